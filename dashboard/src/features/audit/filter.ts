import { momentOf } from '@/lib/format'

const DAY_MS = 86_400_000

/** Times that lines are shown of; the numbers are days up to now. */
export const TIMES = [
  { value: '', label: 'All that is kept' },
  { value: '1', label: 'Last day' },
  { value: '7', label: 'Last week' },
  { value: '30', label: 'Last 30 days' },
  { value: 'own', label: 'From … to …' },
]
/** Kinds of what lines are about, as the API names them. */
export const KINDS =
  'api_key app backup backup_schedule certificate cron_job database deployment domain project redirect settings ssh_key storage_provider user volume webhook'.split(
    ' ',
  )

export interface AuditFilter {
  action: string
  actor: string
  /** An id, or a kind. */
  resource: string
  time: string
  from: string
  to: string
}
const hasId = (resource: string) => /^[a-z]+_[0-9a-z]{20}$/.test(resource)
/** What is chosen as a kind; empty while one resource is. */
export const kindOf = (resource: string): string => (hasId(resource) ? '' : resource)
export const idOf = (resource: string): string => (hasId(resource) ? resource : '')

/** What the API is asked for. `app` stands for `app.`: all that is done to apps. */
export function queryOf(filter: AuditFilter, now: number) {
  const action = filter.action.trim().toLowerCase().replaceAll(/\s+/g, '_')
  const since =
    Number(filter.time) > 0 ? new Date(now - Number(filter.time) * DAY_MS).toISOString() : undefined
  const [from, to] = filter.time === 'own' ? [momentOf(filter.from), momentOf(filter.to)] : [since, undefined]
  return {
    ...(action ? { action: action.includes('.') ? action : `${action}.` } : {}),
    ...(filter.actor.trim() ? { actor: filter.actor.trim() } : {}),
    ...(filter.resource ? { resource: filter.resource } : {}),
    ...(from ? { from } : {}),
    ...(to ? { to } : {}),
  }
}
