import { setTimeout as delay } from 'node:timers/promises'
import { CommandError, say } from '../terminal.ts'
import { dataOf, type Schemas } from './api.ts'
import { EXIT } from './exit-codes.ts'
import { listen, untilInterrupted } from './live.ts'
import { paint, seconds, status } from './output.ts'
import type { Session } from './session.ts'

export type Deployment = Schemas['Deployment']
type LogLine = Schemas['LogLine']

/** Asked for so often when the WebSocket says nothing, which a proxy on the way may not let through. */
const ASK_MS = 1500
const hasEnded = ({ status: now, finished_at }: Deployment) => finished_at !== null || now === 'superseded'

/** Sleeps until something may be new. */
function createBell() {
  let ring = () => {}
  return {
    ring: () => ring(),
    wait: async (signal: AbortSignal) => {
      const woken = new AbortController()
      ring = () => woken.abort()
      await delay(ASK_MS, undefined, { signal: AbortSignal.any([signal, woken.signal]) }).catch(
        () => undefined,
      )
    },
  }
}

/** Writes each step when it ends, and the lines of the log as they come. */
function createReport(is_quiet: boolean) {
  const told = new Set<string>()
  return {
    lines(lines: readonly LogLine[]) {
      if (!is_quiet)
        for (const line of lines) say(`${paint('dim', `${line.source.padEnd(7)} │`)} ${line.text}`)
    },
    steps({ steps }: Deployment) {
      for (const step of steps) {
        if (told.has(step.name) || !['succeeded', 'failed'].includes(step.status)) continue
        told.add(step.name)
        if (is_quiet) continue
        const mark = step.status === 'succeeded' ? paint('green', '✓') : paint('red', '✗')
        say(`${mark} ${step.name} ${paint('dim', seconds(step.duration_ms ?? 0))}`)
      }
    },
  }
}

/** Hands over the lines after a number, answer by answer; the number of the last one. */
async function readLog(
  { api }: Session,
  id: string,
  from: number,
  take: (lines: readonly LogLine[]) => void,
): Promise<number> {
  let after = from
  for (;;) {
    const params = { path: { id }, query: { after } }
    const lines = (await dataOf(api.GET('/api/deployments/{id}/logs', { params }))).data
    if (lines.length === 0) return after
    take(lines)
    after = lines.at(-1)!.seq
  }
}

/**
 * Shows a deployment until it has ended, and answers it. Ctrl-C leaves the deployment alone, and says so.
 * @param options `is_quiet` shows nothing, for programs.
 */
export async function followDeployment(
  session: Session,
  id: string,
  { is_quiet = false } = {},
): Promise<Deployment> {
  const stop = untilInterrupted()
  const done = new AbortController()
  const bell = createBell()
  const report = createReport(is_quiet)
  const listening = listen(
    session,
    `deployments/${id}`,
    bell.ring,
    AbortSignal.any([stop.signal, done.signal]),
  )
  const path = { params: { path: { id } } }
  let after = 0
  try {
    for (;;) {
      // The state first: lines that were written before it ended are then all there.
      const deployment = (await dataOf(session.api.GET('/api/deployments/{id}', path))).data
      after = await readLog(session, id, after, report.lines)
      report.steps(deployment)
      if (hasEnded(deployment)) return deployment
      await bell.wait(stop.signal)
      if (stop.signal.aborted)
        throw new CommandError(
          `The deployment goes on. Stop it in the dashboard, or follow it with: portreeve logs --build --follow`,
          EXIT.INTERRUPTED,
        )
    }
  } finally {
    done.abort()
    await listening
  }
}

/** Throws what went wrong, with the lines that tell it, and where the others are. */
export function requireLive(deployment: Deployment): void {
  if (deployment.status === 'live') return
  const { error } = deployment
  if (!error) throw new CommandError(`The deployment was ${deployment.status}.`, EXIT.FAILED)
  throw new CommandError(
    [
      `The deployment ${status('failed')} in ${error.step ?? 'its course'}: ${error.message}`,
      ...error.log.map((line) => `  ${line}`),
      ...(error.hint ? [error.hint] : []),
      `The whole log: portreeve logs ${deployment.app_id} --build --lines 5000`,
    ].join('\n'),
    EXIT.FAILED,
  )
}
