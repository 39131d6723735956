import { words } from '@/lib/format'

/** What the timeline of an app needs to know of an event. */
interface TimelineEvent {
  type: string
  deployment_id?: string | null
  payload: Record<string, unknown>
}

/**
 * Events of an app, newest first, with one for each step of a deployment: its beginning is left out once its
 * outcome is told. On a later page the outcome of a step that begins there is on the page before.
 */
export function foldSteps<Row extends TimelineEvent>(rows: readonly Row[], page: number): Row[] {
  const told = new Set<string>()
  return rows.filter(({ type, deployment_id, payload }) => {
    if (type !== 'deployment.step' || typeof payload.step !== 'string') return true
    if (page > 1 && payload.step_status === 'running') return false
    const key = `${deployment_id} ${payload.step}`
    const is_new = !told.has(key)
    told.add(key)
    return is_new
  })
}

/** Keys of variables that an event is about; it never holds their values. */
const keysOf = (payload: Record<string, unknown>) =>
  ['added', 'changed', 'removed']
    .flatMap((what) => {
      const keys = payload[what]
      return Array.isArray(keys) && keys.length > 0 ? [`${what} ${keys.join(', ')}`] : []
    })
    .join('; ')
/** What became of a step, or that it runs. */
const stepOf = ({ step, step_status, error }: Record<string, unknown>) =>
  typeof step === 'string' && typeof step_status === 'string'
    ? [`${words(step)} ${step_status === 'running' ? 'is running' : step_status}`, error]
        .filter(Boolean)
        .join(': ')
    : ''
/** Of an app its own events tell the status as well, which is "running" while it sleeps. */
const factsOf = ({ type, payload }: TimelineEvent) =>
  [
    payload.message ?? payload.detail ?? payload.reason,
    payload.error,
    type.startsWith('app.') ? undefined : payload.status,
    ...[payload.step, payload.name, payload.hostname],
  ].filter((value): value is string => typeof value === 'string' && value !== '')

/** What an event says of itself, in a few words, beyond its own name and that of the app. */
export const aboutOf = (app_name: string, event: TimelineEvent): string =>
  keysOf(event.payload) ||
  stepOf(event.payload) ||
  factsOf(event)
    .filter((value) => value !== app_name && value !== event.type.split('.').at(-1))
    .slice(0, 2)
    .join(': ')
