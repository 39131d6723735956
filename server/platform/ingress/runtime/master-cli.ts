import { IngressError } from '../ingress.ts'
import { connectUnix } from './unix-socket.ts'

/**
 * One process of the edge that carries traffic. After a reload, old ones live on until their last connection
 * ends.
 */
export interface EdgeWorker {
  pid: number
  old: boolean
}

/** The edge's runtime socket: the master process passes commands on to its workers. */
export interface MasterCli {
  /** Runs commands in one worker, in order, over one connection; returns everything they print. */
  run(commands: string[], pid?: number): Promise<string>
  /**
   * Loads the configuration on disk into a new worker without losing a connection. Returns what the edge said
   * when it refuses, nothing otherwise.
   */
  reload(): Promise<string | undefined>
  workers(): Promise<EdgeWorker[]>
}

const COMMAND_TIMEOUT_MS = 10_000
const RELOAD_TIMEOUT_MS = 60_000
/** The edge reads a line of commands into one buffer of 16 KiB. */
const MAX_LINE_BYTES = 12_000

/**
 * Talks to the master process behind a socket. Every call opens its own connection, so that a restarted edge
 * needs no care.
 */
export function createMasterCli(socket_path: string): MasterCli {
  return {
    async run(commands, pid) {
      const worker = pid === undefined ? '@1' : `@!${pid}`
      let output = ''
      for (const line of lines(commands.map((command) => `${worker} ${command}`)))
        output += await exchange(socket_path, line, COMMAND_TIMEOUT_MS)
      return output
    },
    async reload() {
      const output = await exchange(socket_path, 'reload', RELOAD_TIMEOUT_MS)
      return output.startsWith('Success=1') ? undefined : output.replace(/^Success=0\n--\n/, '').trim()
    },
    async workers() {
      const output = await exchange(socket_path, 'show proc', COMMAND_TIMEOUT_MS)
      let old = false
      const workers: EdgeWorker[] = []
      for (const line of output.split('\n')) {
        if (line.startsWith('#')) old = line.startsWith('# old workers')
        const pid = /^(\d+)\s+worker\s/.exec(line)?.[1]
        if (pid) workers.push({ pid: Number(pid), old })
      }
      return workers
    },
  }
}

/** Packs commands into as few lines as fit the edge's buffer. */
function lines(commands: string[]): string[] {
  const packed: string[] = []
  let line = ''
  for (const command of commands) {
    if (line !== '' && line.length + command.length + 2 > MAX_LINE_BYTES) {
      packed.push(line)
      line = ''
    }
    line += line === '' ? command : `; ${command}`
  }
  if (line !== '') packed.push(line)
  return packed
}

/** Sends one line and reads the answer to its end. */
function exchange(socket_path: string, line: string, timeout_ms: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectUnix(socket_path)
    const chunks: Buffer[] = []
    const settle = (error?: Error) => {
      socket.destroy()
      if (error)
        reject(
          new IngressError('The edge does not answer; its container may be stopped.', {
            cause: error,
          }),
        )
      else resolve(Buffer.concat(chunks).toString('utf8'))
    }
    socket.setTimeout(timeout_ms, () => settle(new Error(`no answer on ${socket_path} in ${timeout_ms} ms`)))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.once('error', settle)
    socket.once('end', () => settle())
    socket.end(`${line}\n`)
  })
}
