import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from '../connection.ts'
import { toEngineError } from '../failures.ts'
import type { TerminalProcess, TerminalSize, TerminalSpec } from '../workload.ts'

/** Marks every process of a terminal, also those that left its process group, so that all can be ended. */
const MARK = 'PORTREEVE_TERMINAL'
/** A fixed command: the shell that people expect where the image has it, else the one that all have. */
const SHELL = ['/bin/sh', '-c', 'exec "$(command -v bash || echo /bin/sh)"']
/**
 * Hangs up, waits a second, then kills what is left. It runs as the terminal's own user, who may read the
 * environment of the terminal's processes, and without the mark, so that it does not end itself.
 */
const HANG_UP = `for signal in HUP KILL; do
  for file in $(grep -ls "${MARK}=$1" /proc/[0-9]*/environ 2>/dev/null); do
    pid=\${file#/proc/}
    kill -$signal "\${pid%/*}" 2>/dev/null
  done
  [ $signal = HUP ] && sleep 1
done
exit 0`
const RESIZE_ATTEMPTS = 20
const EXIT_ATTEMPTS = 40
const PAUSE_MS = 50
const SESSION = /^[a-z0-9_]{1,64}$/

interface ExecInfo {
  Running: boolean
  ExitCode: number | null
}

/** Shells with a terminal inside running containers. */
export function createTerminals(connection: Connection) {
  const create = (instance_id: string, body: object, signal?: AbortSignal) =>
    connection.call<{ Id: string }>({
      method: 'POST',
      path: `/containers/${encodeURIComponent(instance_id)}/exec`,
      body,
      signal,
    })
  const inspect = (id: string) =>
    connection.call<ExecInfo | undefined>({ path: `/exec/${encodeURIComponent(id)}/json`, accept: [404] })

  /** The size can be set once the process is there, a moment after its stream is. */
  async function resize(id: string, { cols, rows }: TerminalSize): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await connection.call<void>({
          method: 'POST',
          path: `/exec/${encodeURIComponent(id)}/resize`,
          query: { w: cols, h: rows },
        })
      } catch (error) {
        if (attempt === RESIZE_ATTEMPTS || !(await inspect(id).catch(() => undefined))?.Running) throw error
        await wait(PAUSE_MS)
      }
    }
  }

  /** Undefined when the container is gone, and with it the knowledge of how the shell ended. */
  async function exitCode(id: string): Promise<number | undefined> {
    for (let attempt = 0; attempt < EXIT_ATTEMPTS; attempt++) {
      const info = await inspect(id).catch(() => undefined)
      if (!info) return undefined
      if (!info.Running && info.ExitCode !== null) return info.ExitCode
      await wait(PAUSE_MS)
    }
    return undefined
  }

  return {
    async open(instance_id: string, spec: TerminalSpec, signal: AbortSignal): Promise<TerminalProcess> {
      const { Id: id } = await create(instance_id, createBody(spec), signal)
      const socket = await connection.hijack(`/exec/${encodeURIComponent(id)}/start`, {}, signal, {
        Detach: false,
        Tty: true,
      })
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.on('error', () => {})
      // The shell's end closes the engine's half; ours follows at once.
      socket.on('end', () => socket.end())
      await resize(id, spec).catch(() => {})
      return {
        stream: socket,
        resize: (size) => resize(id, size).catch((error: unknown) => Promise.reject(toEngineError(error))),
        done: closed.then(() => exitCode(id)),
      }
    },
    async hangUp(instance_id: string, session: string): Promise<void> {
      const { Id: id } = await create(instance_id, {
        Cmd: ['/bin/sh', '-c', HANG_UP, 'sh', requireSession(session)],
      })
      await connection.call({
        method: 'POST',
        path: `/exec/${encodeURIComponent(id)}/start`,
        body: { Detach: true, Tty: false },
      })
    },
  }
}

function requireSession(session: string): string {
  if (!SESSION.test(session)) throw new TypeError('A session of a terminal is named by its id.')
  return session
}

/** The body of a create request: typed fields only, a fixed command, never a privilege. */
const createBody = ({ session, environment }: TerminalSpec) => ({
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  Tty: true,
  Cmd: SHELL,
  Env: [
    `${MARK}=${requireSession(session)}`,
    'TERM=xterm-256color',
    ...Object.entries(environment ?? {}).map(([name, value]) => `${name}=${value}`),
  ],
})
