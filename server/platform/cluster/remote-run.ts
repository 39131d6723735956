import type { Run, RunOptions, RunResult } from '#server/kernel/process'
import { ClusterError } from './cluster.ts'
import type { Ssh } from './ssh.ts'

const TIMEOUT_MS = 60_000
const MOST_BYTES = 1024 ** 2
const KILLED = 137
/** So long has a server that was told to end a command to say that it did. */
const CLOSE_MS = 2_000
/** A login without a terminal leaves out the folders of the tools that administer a machine. */
const ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  LANG: 'C',
}

/** The first so many bytes of a stream, all of which is read. */
function keepFirst(stream: NodeJS.ReadableStream, most_bytes: number) {
  const chunks: Buffer[] = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    if (size < most_bytes) chunks.push(chunk.subarray(0, most_bytes - size))
    size += chunk.length
  })
  return {
    text: () => Buffer.concat(chunks).toString('utf8'),
    isCut: () => size > most_bytes,
  }
}

/** The command with its environment; `sudo -n` asks nobody for a password. */
export function commandOf(argv: readonly string[], is_root: boolean, env: RunOptions['env'] = {}): string[] {
  const pairs = Object.entries({ ...ENVIRONMENT, ...env }).map(([name, value]) => `${name}=${value}`)
  return [...(is_root ? [] : ['sudo', '-n', '--']), 'env', ...pairs, ...argv]
}

/** A connection that broke says nothing about the server, which is tried again. */
const brokenOff = ({ address }: Ssh, cause?: unknown): ClusterError =>
  new ClusterError('unreachable', `The SSH connection to ${address} broke off.`, {
    cause,
    hint: 'Check that it runs and that this server reaches it over SSH.',
  })
const isBroken = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ECONNRESET'

/**
 * Runs commands on another server as `run` does here: what is written for one machine works on
 * both. Their folder is that of the login, whatever `cwd` says.
 */
export const createRemoteRun =
  (ssh: Ssh, is_root: boolean): Run =>
  async (argv, options) => {
    const began = performance.now()
    const most_bytes = options.max_output_bytes ?? MOST_BYTES
    const channel = await ssh.exec(commandOf(argv, is_root, options.env)).catch((error: unknown) => {
      throw isBroken(error) ? brokenOff(ssh, error) : error
    })
    const [stdout, stderr] = [keepFirst(channel, most_bytes), keepFirst(channel.stderr, most_bytes)]
    let reason: 'timeout' | 'abort' | undefined
    const unanswered = Promise.withResolvers<undefined>()
    let last: NodeJS.Timeout | undefined
    const end = (why: 'timeout' | 'abort') => {
      reason ??= why
      last ??= setTimeout(unanswered.resolve, CLOSE_MS, undefined)
      channel.signal('KILL')
      channel.close()
    }
    const timer = setTimeout(end, options.timeout_ms ?? TIMEOUT_MS, 'timeout')
    const onAbort = () => end('abort')
    options.signal?.addEventListener('abort', onAbort, { once: true })
    if (options.signal?.aborted) onAbort()
    // A command that ends without reading it is no error.
    channel.on('error', () => {})
    channel.end(options.stdin)
    try {
      const closed = new Promise<number | undefined>((resolve, reject) => {
        // The end may have been read together with the beginning; this says again how it was.
        channel.once('close', (code?: number | null, signal?: string) =>
          resolve(code ?? (signal ? KILLED : undefined)),
        )
        void ssh.closed.then(() => reject(brokenOff(ssh)))
      })
      const exit_code = await Promise.race([closed, unanswered.promise])
      if (exit_code === undefined && !reason) throw brokenOff(ssh)
      return {
        exit_code: exit_code ?? KILLED,
        stdout: stdout.text(),
        stderr: stderr.text(),
        timed_out: reason === 'timeout',
        aborted: reason === 'abort',
        truncated: stdout.isCut() || stderr.isCut(),
        duration_ms: Math.round(performance.now() - began),
      } satisfies RunResult
    } finally {
      clearTimeout(timer)
      clearTimeout(last)
      options.signal?.removeEventListener('abort', onAbort)
    }
  }

/** What a command printed; throws an error with the first line of its complaint. */
export async function output(
  run: Run,
  argv: readonly string[],
  options: Partial<RunOptions> = {},
): Promise<string> {
  const result = await run(argv, { cwd: '/', timeout_ms: 20_000, ...options })
  if (result.exit_code === 0) return result.stdout
  const line = result.stderr.trim().split('\n')[0]
  throw new Error(`${argv[0]} says: ${line || `exit code ${result.exit_code}`}`)
}
