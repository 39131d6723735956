import { CommandError, jsonText, say } from '../../terminal.ts'
import { dataOf, type Schemas } from '../api.ts'
import { type AppOption, getApp, namedApp } from '../apps.ts'
import { defineClientVerb, withNamedApp } from '../client-verb.ts'
import { followDeployment, requireLive } from '../follow-deployment.ts'
import { EXIT } from '../exit-codes.ts'
import { type Frame, listen, untilInterrupted } from '../live.ts'
import { pointInTime, wholeNumber } from '../option-values.ts'
import { paint } from '../output.ts'
import { type ClientOptions, openSession, type Session } from '../session.ts'

interface LogOptions extends ClientOptions, AppOption {
  follow?: boolean
  lines: number
  since?: string
  search?: string
  build?: boolean
  access?: boolean
}
type Line = Pick<Schemas['LogLine'], 'at' | 'text' | 'stream'>

function kindOf({ build, access }: LogOptions) {
  if (build) return 'build'
  return access ? 'access' : 'runtime'
}

const write = (options: LogOptions, line: Line): void =>
  say(options.json ? jsonText(line) : `${paint('dim', line.at)} ${line.text}`)

/** Follows what is printed from now on, after the last line that was shown. */
async function follow(session: Session, id: string, options: LogOptions, after?: string): Promise<void> {
  const stop = untilInterrupted()
  let refusal: CommandError | undefined
  let is_told = false
  const hear = ({ type, data }: Frame) => {
    is_told = false
    if (type === 'log') write(options, data as Line)
    if (type !== 'error') return
    refusal = new CommandError((data as { message: string }).message, EXIT.REFUSED)
    stop.abort()
  }
  // A connection does not say why it is refused, and one that was lost may come back.
  const stillThere = async () => {
    try {
      await getApp(session, id)
    } catch (error) {
      if (!(error instanceof CommandError) || [EXIT.DENIED, EXIT.NOT_FOUND].includes(error.exit_code as 3))
        throw error
      if (!is_told) process.stderr.write(`portreeve: ${error.message} It is tried again.\n`)
      is_told = true
    }
  }
  const channel = `apps/${id}/logs${options.access ? '/access' : ''}`
  await listen(session, channel, hear, stop.signal, after, stillThere)
  if (refusal) throw refusal
}

async function logs(argument: string | undefined, options: LogOptions): Promise<void> {
  const name = namedApp(argument, options)
  const session = await openSession(options)
  const app = await getApp(session, name)
  if (options.build && options.follow && app.latest_deployment)
    return requireLive(await followDeployment(session, app.latest_deployment.id))
  const query = {
    type: kindOf(options) as 'runtime',
    tail: options.lines,
    ...(options.since === undefined ? {} : { since: options.since }),
    ...(options.search === undefined ? {} : { q: options.search }),
  }
  const { data } = await dataOf(
    session.api.GET('/api/apps/{id}/logs', { params: { path: { id: app.id }, query } }),
  )
  for (const line of data) write(options, line)
  const numbered = data as unknown as readonly { seq?: number }[]
  const newest = Math.max(0, ...numbered.map(({ seq }) => seq ?? 0))
  if (options.follow) await follow(session, app.id, options, newest > 0 ? String(newest) : undefined)
}

export default defineClientVerb((verb) => {
  withNamedApp(verb)
    .description('Shows what an app prints. With --json each line is one line of JSON.')
    .option('-f, --follow', 'go on with new lines until Ctrl-C')
    .option('-n, --lines <number>', 'newest lines to begin with', wholeNumber, 200)
    .option('--since <time>', 'only lines from this time on, such as 2026-11-22T08:00:00Z', pointInTime)
    .option('--search <text>', 'only lines that contain this')
    .option('--build', 'the log of the latest deployment')
    .option('--access', 'requests at the edge')
    .action(logs)
})
