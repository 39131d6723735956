import type { PlatformEvent } from './events.ts'

/** One of the alerts that a message is about. */
export interface ToldAlert {
  rule_id: string
  /** Name of the rule. */
  name: string
  severity: 'info' | 'warning' | 'critical'
  subject_id: string
  /** App that its subject is, or is a part of. */
  app_id: string | null
  message: string
  value: number | null
}

/** Alerts that one message lists; it counts the others. */
const MOST_LISTED = 100
const GRAVITY = { critical: 0, warning: 1, info: 2 }

/** What a message about alerts that begin or end together says. The gravest comes first: the others are counted. */
export function toldOf(alerts: readonly ToldAlert[], is_fired: boolean) {
  const sorted = alerts.toSorted((one, other) => GRAVITY[one.severity] - GRAVITY[other.severity])
  const { message, severity } = sorted[0]!
  const more = sorted.length > 1 ? ` And ${sorted.length - 1} more.` : ''
  return {
    message: `${is_fired ? '' : 'Over: '}${message}${more}`,
    severity,
    alerts: sorted.slice(0, MOST_LISTED),
  }
}

const listed = ({ type, payload }: PlatformEvent): ToldAlert[] =>
  type.startsWith('alert.') ? ((payload.alerts ?? []) as ToldAlert[]) : []

/** Apps that an event is about: alerts of many come in one. */
export const appsOf = (event: PlatformEvent): string[] => [
  ...new Set(
    [event.app_id, ...listed(event).map(({ app_id }) => app_id)].filter((id) => typeof id === 'string'),
  ),
]

/** An event as it is told to whoever hears of one app: of the alerts in it those of that app. */
export function ofApp(event: PlatformEvent, app_id: string): PlatformEvent {
  const own = listed(event).filter((alert) => alert.app_id === app_id)
  if (own.length === 0) return event
  return { ...event, app_id, payload: { ...event.payload, ...toldOf(own, event.type === 'alert.firing') } }
}
