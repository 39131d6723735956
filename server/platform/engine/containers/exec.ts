import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from '../connection.ts'
import { EngineError } from '../engine.ts'
import { aborted, toEngineError } from '../failures.ts'
import type { ExecProcess, ExecResult, ExecSpec } from '../workload.ts'

const STDERR_LIMIT_BYTES = 16 * 1024
/** More is said by no command that goes on with its work, and somebody has to read it. */
const MOST_STDERR_BYTES = 64 * 1024 ** 2
/** The stream ends a moment before the engine knows the exit code. */
const EXIT_ATTEMPTS = 200
const EXIT_PAUSE_MS = 25
const START_ATTEMPTS = 80

interface ExecInfo {
  Running: boolean
  ExitCode: number | null
  Pid: number
}

/** Runs commands inside running containers, with their streams apart. */
export function createExec(connection: Connection) {
  const create = (instance_id: string, body: object, signal?: AbortSignal) =>
    connection.call<{ Id: string }>({
      method: 'POST',
      path: `/containers/${encodeURIComponent(instance_id)}/exec`,
      body,
      signal,
    })
  const inspect = (id: string) => connection.call<ExecInfo>({ path: `/exec/${encodeURIComponent(id)}/json` })

  async function exitCode(id: string): Promise<number> {
    for (let attempt = 0; attempt < EXIT_ATTEMPTS; attempt++) {
      const { Running, ExitCode } = await inspect(id)
      if (!Running && ExitCode !== null) return ExitCode
      await wait(EXIT_PAUSE_MS)
    }
    throw new EngineError('failed', 'The connection to the command broke while it ran.', 'Try again.')
  }

  /** Breaking the streams off does not end a command that neither reads nor writes: it is told by its number. */
  async function end(instance_id: string, id: string): Promise<void> {
    if (!connection.local) return
    let { Running, Pid, ExitCode } = await inspect(id)
    // Cut off at its very beginning, a command gets its number a moment later.
    for (let attempt = 0; ExitCode === null && !Pid && attempt < START_ATTEMPTS; attempt++) {
      await wait(EXIT_PAUSE_MS)
      ;({ Running, Pid, ExitCode } = await inspect(id))
    }
    if (!Running || !Pid) return
    const pid = /^NSpid:.*\s(\d+)$/m.exec(await readFile(`/proc/${Pid}/status`, 'utf8'))?.[1]
    if (!pid) return
    const kill = await create(instance_id, { Cmd: ['kill', '-TERM', pid], User: '0' })
    await connection.call({
      method: 'POST',
      path: `/exec/${encodeURIComponent(kill.Id)}/start`,
      body: { Detach: true, Tty: false },
    })
  }

  return async function exec(instance_id: string, spec: ExecSpec, signal: AbortSignal): Promise<ExecProcess> {
    const { Id: id } = await create(instance_id, createBody(spec), signal)
    const socket = await connection.hijack(`/exec/${encodeURIComponent(id)}/start`, {}, signal, {
      Detach: false,
      Tty: false,
    })
    const stdout = new PassThrough()
    const stdin = inputOf(socket)
    const cut = () => socket.destroy(aborted('The command'))
    signal.addEventListener('abort', cut, { once: true })
    // Whoever gives up on the output does not want the rest of it.
    stdout.once('close', () => {
      if (!stdout.readableEnded && !stdout.writableEnded) socket.destroy()
    })
    const running = (async (): Promise<ExecResult> => {
      try {
        const stderr = await pump(socket, stdout)
        return { exit_code: await exitCode(id), stderr }
      } catch (error) {
        const failure = signal.aborted ? aborted('The command') : toEngineError(error)
        stdout.destroy(failure)
        // The command may have ended in the meantime, or its container.
        await end(instance_id, id).catch(() => {})
        throw failure
      } finally {
        signal.removeEventListener('abort', cut)
        socket.destroy()
      }
    })()
    running.catch(() => {})
    stdout.on('error', () => {})
    return { stdin, stdout, done: running }
  }
}

/** The body of a create request: typed fields only, never a privilege. */
const createBody = (spec: ExecSpec) => ({
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  Tty: false,
  Cmd: [...spec.command],
  Env: Object.entries(spec.environment ?? {}).map(([name, value]) => `${name}=${value}`),
  ...(spec.user === undefined ? {} : { User: spec.user }),
})

/** A frame begins with a byte for its stream, three of padding and four of length. */
const HEADER_BYTES = 8
const STDERR = 2

/** The engine's frames as they come, without waiting for the end of one and without a copy. */
async function* readParts(source: AsyncIterable<Buffer>): AsyncGenerator<{ stderr: boolean; part: Buffer }> {
  const header = Buffer.alloc(HEADER_BYTES)
  let header_length = 0
  let left = 0
  for await (const chunk of source) {
    for (let offset = 0; offset < chunk.length; ) {
      if (left === 0) {
        const taken = chunk.copy(header, header_length, offset)
        header_length += taken
        offset += taken
        if (header_length < HEADER_BYTES) continue
        header_length = 0
        left = header.readUInt32BE(4)
        continue
      }
      const part = chunk.subarray(offset, offset + left)
      offset += part.length
      left -= part.length
      yield { stderr: header[0] === STDERR, part }
    }
  }
}

/** A command that prints little is not kept waiting for a block to fill. */
const FLUSH_MS = 10
const FIRST_BLOCK_BYTES = 16 * 1024
const BLOCK_BYTES = 256 * 1024

/**
 * Gathers small parts into blocks. Engines send what a command prints in pieces of a few kilobytes,
 * and every stage behind, compression on another thread above all, costs as much for such a piece
 * as for a large one.
 */
function createBlocks(stdout: PassThrough) {
  let block = Buffer.allocUnsafeSlow(FIRST_BLOCK_BYTES)
  let filled = 0
  let timer: NodeJS.Timeout | undefined
  function flush(next_bytes = FIRST_BLOCK_BYTES): boolean {
    clearTimeout(timer)
    timer = undefined
    if (filled === 0) return true
    const has_room = stdout.destroyed || stdout.write(block.subarray(0, filled))
    block = Buffer.allocUnsafeSlow(next_bytes)
    filled = 0
    return has_room
  }
  return {
    flush,
    discard: () => clearTimeout(timer),
    /** False when the reader is to be waited for before more is added. */
    add(part: Buffer): boolean {
      let has_room = true
      for (let from = 0; from < part.length; ) {
        const taken = part.copy(block, filled, from)
        from += taken
        filled += taken
        if (filled === block.length) has_room = flush(BLOCK_BYTES)
      }
      if (filled > 0) timer ??= setTimeout(() => flush(), FLUSH_MS)
      return has_room
    },
  }
}

/** Hands stdout on as fast as it is read, and keeps the end of stderr. */
async function pump(socket: Socket, stdout: PassThrough): Promise<string> {
  let tail: Buffer = Buffer.alloc(0)
  let said = 0
  const blocks = createBlocks(stdout)
  try {
    for await (const { stderr, part } of readParts(socket)) {
      if (stderr) {
        said += part.length
        if (said > MOST_STDERR_BYTES)
          throw new EngineError('failed', 'The command said without end what went wrong, and was ended.')
        tail = Buffer.concat([tail, part]).subarray(-STDERR_LIMIT_BYTES)
        continue
      }
      if (stdout.destroyed)
        throw new EngineError('aborted', 'The output of the command was not read to its end.')
      if (!blocks.add(part)) await untilWritable(stdout)
    }
    blocks.flush()
  } finally {
    blocks.discard()
  }
  stdout.end()
  return tail.toString('utf8')
}

/** Room in a stream, or its end; leaves no listener behind, however often it is asked. */
async function untilWritable(stream: PassThrough): Promise<void> {
  const heard = new AbortController()
  const options = { signal: heard.signal }
  await Promise.race([once(stream, 'drain', options), once(stream, 'close', options)])
  heard.abort()
}

/** The command's input; ending it leaves the other direction open. */
function inputOf(socket: Socket): Writable {
  const stdin = new Writable({
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
  })
  // A command may end before it has read everything; how it ended tells more than the broken pipe.
  stdin.on('error', () => {})
  socket.on('error', () => {})
  socket.once('close', () => {
    if (!stdin.writableFinished)
      stdin.destroy(new EngineError('failed', 'The command ended before its input.'))
  })
  return stdin
}
