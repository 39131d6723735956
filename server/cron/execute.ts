import { firstBytes } from '#server/kernel/first-bytes'
import { CUT_MARK, redactor } from '#server/kernel/redact'
import type { Secrets } from '#server/kernel/secrets'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import type { CronJobRow } from './repository.ts'
import type { HttpCall } from './schema.ts'
import type { Tail } from './tail.ts'

const MOST_ANSWER = 4096
/**
 * A call holds its place among the runs of everybody for so long: after that it costs nothing but a connection, and
 * whoever answers it decides when it ends.
 */
const CALL_HOLDS_MS = 60_000

/** What a command in the image of an app came to. */
export interface CommandResult {
  exit_code: number
  oom_killed: boolean
  timed_out: boolean
}
/** What runs need of the rest of the installation. */
export interface ExecutionPorts {
  /**
   * Runs a command beside the app, in the image, environment and limits of what is live; lines come without
   * secrets. Throws a conflict when nothing is live.
   */
  command(
    app_id: string,
    requested: {
      command: string | string[]
      purpose: string
      timeout_ms: number
      onLine(text: string): void
    },
    signal: AbortSignal,
  ): Promise<CommandResult>
  /** Whether a command of an app has no room in the quotas of its project until others have ended. */
  hasToWait(app_id: string): boolean
  /** Removes what an interrupted command has left running. */
  removeCommand(purpose: string): Promise<void>
  /** Takes secrets of an app out of a text. */
  redact(app_id: string, text: string): Promise<string>
  client: Pick<GuardedClient, 'send'>
}

/** How one attempt went. */
export interface Attempt {
  ok: boolean
  timed_out: boolean
  exit_code: number | null
  http_status: number | null
  error: string | null
  output: string
  truncated: boolean
}

export const requestContext = (id: string) => `cron_jobs/request/${id}`
/** Headers and body of a call, in clear. */
export const openRequest = (secrets: Secrets, row: CronJobRow): Pick<HttpCall, 'headers' | 'body'> =>
  row.request === null
    ? {}
    : (JSON.parse(secrets.open(row.request, requestContext(row.id))) as Pick<HttpCall, 'headers' | 'body'>)

export interface AttemptOptions {
  purpose: string
  /** Takes what a command prints, so that it is there also when the command is ended from outside. */
  tail: Tail
  /** Gives the place of the run to others, while it goes on. */
  leavePlace(): void
  /** How long a call holds its place. Default 60,000. */
  call_holds_ms?: number
}

/** Why a command did not succeed; null when it did. */
function errorOf(
  result: { timed_out: boolean; oom_killed: boolean; exit_code: number | null },
  timeout_s: number,
): string | null {
  if (result.timed_out) return `The command was ended after ${timeout_s} seconds.`
  if (result.oom_killed) return 'The command was ended because it used more memory than the limit of the app.'
  return result.exit_code === 0 ? null : `The command exited with code ${result.exit_code}.`
}

async function runCommand(
  ports: ExecutionPorts,
  job: CronJobRow,
  { purpose, tail }: AttemptOptions,
  signal: AbortSignal,
): Promise<Attempt> {
  const result = await ports.command(
    job.app_id,
    {
      command: JSON.parse(job.command!) as string | string[],
      purpose,
      timeout_ms: job.timeout_s * 1000,
      onLine: tail.add,
    },
    signal,
  )
  const error = errorOf(result, job.timeout_s)
  return {
    ok: error === null,
    timed_out: result.timed_out,
    exit_code: result.timed_out ? null : result.exit_code,
    http_status: null,
    error,
    ...tail.end(),
  }
}

/** The beginning of a body as text; the rest is not waited for. */
async function beginningOf(body: AsyncIterable<Uint8Array>): Promise<{ text: string; truncated: boolean }> {
  const { bytes, truncated } = await firstBytes(body, MOST_ANSWER)
  return { text: bytes.toString('utf8').replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, ''), truncated }
}

async function call(
  ports: ExecutionPorts,
  secrets: Secrets,
  job: CronJobRow,
  { leavePlace, call_holds_ms = CALL_HOLDS_MS }: AttemptOptions,
  signal: AbortSignal,
): Promise<Attempt> {
  const failed = (error: string, timed_out = false): Attempt => ({
    ok: false,
    timed_out,
    exit_code: null,
    http_status: null,
    error,
    output: '',
    truncated: false,
  })
  const { headers = {}, body } = openRequest(secrets, job)
  const long = setTimeout(leavePlace, call_holds_ms)
  try {
    const answer = await ports.client.send(job.url!, {
      method: job.method as HttpCall['method'],
      headers,
      ...(body ? { body } : {}),
      signal,
      timeout_ms: job.timeout_s * 1000,
    })
    const { text, truncated } = await beginningOf(answer.body)
    const ok = answer.status < 400
    // The beginning of a secret where it was cut off would not be known as one.
    const kept = truncated ? `${text}${CUT_MARK}` : text
    const hidden = [...Object.values(headers), ...(body ? [body] : [])]
    const shown = redactor(hidden)(await ports.redact(job.app_id, kept))
    return {
      ok,
      timed_out: false,
      exit_code: null,
      http_status: answer.status,
      error: ok ? null : `The address answered ${answer.status}.`,
      output: shown,
      truncated,
    }
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'aborted') throw error
    return error.code === 'timeout'
      ? failed(`The address did not answer within ${job.timeout_s} seconds.`, true)
      : failed(error.message)
  } finally {
    clearTimeout(long)
  }
}

/** One attempt of a job: a command or a call. */
export const execute = (
  ports: ExecutionPorts,
  secrets: Secrets,
  job: CronJobRow,
  options: AttemptOptions,
  signal: AbortSignal,
): Promise<Attempt> =>
  job.command === null ? call(ports, secrets, job, options, signal) : runCommand(ports, job, options, signal)
