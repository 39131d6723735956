import { type PlatformEvent, toldName } from '#server/kernel/events'
import type { Notice, Severity } from './notifiers/notifier.ts'

/** Families of events that leave the installation. Source: api.md "Monitoring, cron, webhooks, previews". */
export const FAMILIES = [
  'deployment',
  'app',
  'domain',
  'certificate',
  'database',
  'backup',
  'cron',
  'alert',
  'uptime',
  'node',
  'preview',
] as const

/** What a notification tells unless its creator chose otherwise: what a person wants to be woken for. */
export const USUAL_EVENTS = [
  'deployment.finished',
  'deployment.failed',
  'app.crashed',
  'app.oom_killed',
  'backup.failed',
  'backup.missed',
  'database.archive_failing',
  'database.archive_gap',
  'certificate.failed',
  'cron.failed',
  'cron.missed',
  'alert.*',
  'node.unreachable',
  'preview.waiting',
]

/** Progress that only the dashboard needs. */
const INNER = new Set(['deployment.step'])

export const isTold = (type: string): boolean =>
  !INNER.has(type) && FAMILIES.some((family) => type.startsWith(`${family}.`))

/** Whether an event is among those that a webhook asked for: `*`, `deployment.*` or a whole type. */
export const isAskedFor = (type: string, patterns: readonly string[]): boolean =>
  patterns.some(
    (pattern) =>
      pattern === '*' ||
      pattern === type ||
      (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))),
  )

/**
 * Whether a webhook that asked for these is told of an event. An alert that only says what another event
 * said already comes to those who do not hear of that one, and to programs that take everything.
 */
export function isWanted({ type, payload }: PlatformEvent, patterns: readonly string[]): boolean {
  if (!isAskedFor(type, patterns)) return false
  if (!type.startsWith('alert.') || patterns.includes('*')) return true
  return typeof payload.event !== 'string' || !isAskedFor(payload.event, patterns)
}

const BAD =
  /\.(failed|crashed|oom_killed|unreachable|missed|firing|lost|start_failed|archive_failing|archive_gap|recovery_failed)$/
const GOOD = /\.(live|finished|succeeded|running|resolved|recovered|issued|active|verified|restored)$/
const UNSURE = /\.(cancelled|superseded|instance_exited|expiring|pending|drained)$/

export function severityOf(type: string): Severity {
  if (BAD.test(type)) return 'error'
  if (GOOD.test(type)) return 'success'
  return UNSURE.test(type) ? 'warning' : 'info'
}

const OF_ALERT: ReadonlyMap<unknown, Severity> = new Map([
  ['info', 'info'],
  ['warning', 'warning'],
])
/** An alert says itself how grave it is; that it is over is good news whatever it was. */
const graveness = ({ type, payload }: PlatformEvent): Severity =>
  (type === 'alert.firing' && OF_ALERT.get(payload.severity)) || severityOf(type)

/** What a sentence about an event needs to name. */
export interface NoticeNames {
  app?: string
  /** Address of the dashboard without a slash at its end; null when there is none. */
  dashboard: string | null
}

const words = (text: string) => text.replaceAll('_', ' ')

/** What became of something, as the end of a sentence: it failed, it is live. */
export const became = (what: string): string =>
  /^(failed|finished)$/.test(what) ? what : `is ${words(what)}`

function titleOf({ type, payload }: PlatformEvent, app: string | undefined): string {
  const [family = '', ...rest] = type.split('.')
  const what = words(rest.join(' '))
  const name = toldName(payload)
  if (family === 'deployment')
    return `${app ?? 'An app'}: deployment #${String(payload.number ?? '?')} ${became(what)}`
  if (family === 'alert' && typeof payload.message === 'string')
    return `${rest[0] === 'firing' ? 'Alert: ' : ''}${payload.message}`
  if (family === 'preview' && payload.number !== undefined)
    return `${app ?? 'An app'}: the preview of #${String(payload.number)} ${became(what)}`
  if (family === 'app') return `${app ?? 'An app'}: ${what}`
  return [app, `${family}${name && name !== app ? ` ${name}` : ''}: ${what}`].filter(Boolean).join(', ')
}

/** What an event says to people and programs outside. Payloads of events never hold a secret. */
export function noticeOf(id: string, event: PlatformEvent, names: NoticeNames): Notice {
  const { error, reason, message } = event.payload
  // The message of an alert is its title.
  const causes = event.type.startsWith('alert.') ? [] : [error, reason, message]
  const cause = causes.find((value) => typeof value === 'string')
  const place = event.deployment_id
    ? `/deployments/${event.deployment_id}`
    : event.app_id && `/apps/${event.app_id}`
  return {
    id,
    type: event.type,
    created_at: event.created_at,
    severity: graveness(event),
    title: titleOf(event, names.app),
    text: typeof cause === 'string' ? cause : '',
    url: names.dashboard && place ? `${names.dashboard}${place}` : names.dashboard,
    data: {
      ...event.payload,
      project_id: event.project_id,
      ...(event.app_id ? { app_id: event.app_id, app_name: names.app ?? null } : {}),
      ...(event.deployment_id ? { deployment_id: event.deployment_id } : {}),
    },
  }
}
