import type { ReleaseVariables } from '#server/env/resolved'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { invalid } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { MASK } from '#server/kernel/schemas'
import { type Secrets, unlessUnreadable } from '#server/kernel/secrets'
import type { PreviewRepository, SettingsRow } from './repository.ts'
import { DEFAULTS, type PreviewSettings, type PreviewSettingsChange } from './schema.ts'

export interface SettingsOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  events: Events
  audit: AuditTrail
  repository: PreviewRepository
  /** Whether a variable is taken for a secret. */
  seemsSecret(key: string, value: string): boolean
  /** Keys of the variables of an app that are secrets, whatever they are called. */
  secretKeys(app_id: string): ReadonlySet<string>
}
/** A variable of previews as it is kept: what it stands for in the app may be gone, or be no secret any more. */
interface KeptVariable {
  value: string
  secret: boolean
}
/** What sealed variables are bound to. */
export const envContext = (app_id: string) => `preview_settings/env/${app_id}`

/** What an app says about its previews. */
export function createPreviewSettings(options: SettingsOptions) {
  const { db, clock, secrets, events, audit, repository, seemsSecret, secretKeys } = options
  const rowOf = (app_id: string): SettingsRow =>
    repository.settings(app_id) ?? {
      app_id,
      enabled: 0,
      max_previews: DEFAULTS.limit,
      ttl_seconds: DEFAULTS.ttl_seconds,
      domain_pattern: DEFAULTS.domain_pattern,
      forks: DEFAULTS.forks,
      databases: 0,
      env: null,
      updated_at: '',
    }
  /** What takes the place of a secret is one. Those that were stored as texts did not say whether they are. */
  const openEnv = ({ app_id, env }: SettingsRow): Map<string, KeptVariable> => {
    if (env === null) return new Map()
    const kept = JSON.parse(secrets.open(env, envContext(app_id))) as Record<string, KeptVariable | string>
    const hidden = secretKeys(app_id)
    return new Map(
      Object.entries(kept).map(([key, one]) => {
        const { value, secret } = typeof one === 'string' ? { value: one, secret: false } : one
        return [key, { value, secret: secret || hidden.has(key) || seemsSecret(key, value) }]
      }),
    )
  }
  const view = (row: SettingsRow): PreviewSettings => ({
    app_id: row.app_id,
    enabled: row.enabled === 1,
    limit: row.max_previews,
    ttl_seconds: row.ttl_seconds,
    domain_pattern: row.domain_pattern,
    forks: row.forks,
    databases: row.databases === 1,
    env: Object.fromEntries(
      [...openEnv(row)].map(([key, { value, secret }]) => [key, secret ? MASK : value]),
    ),
    updated_at: row.updated_at || null,
  })
  /** The sealed set after a change; a masked secret stays as it is. */
  const sealEnv = (row: SettingsRow, given: Record<string, string>): string | null => {
    // What cannot be read any more is in the way of nothing that was sent as a whole.
    const before = Object.values(given).includes(MASK) ? openEnv(row) : new Map<string, KeptVariable>()
    const hidden = secretKeys(row.app_id)
    const entries = Object.entries(given).map(([key, value]): [string, KeptVariable] => {
      if (value !== MASK) return [key, { value, secret: hidden.has(key) || seemsSecret(key, value) }]
      const kept = before.get(key)
      if (kept === undefined) throw invalid(`env.${key}`, 'is masked, but there is no such variable yet.')
      return [key, kept]
    })
    return entries.length === 0
      ? null
      : secrets.seal(JSON.stringify(Object.fromEntries(entries)), envContext(row.app_id))
  }
  const audited = ({ env, ...row }: SettingsRow) => ({
    ...row,
    env: env === null ? [] : [...unlessUnreadable(() => openEnv({ ...row, env }), new Map()).keys()],
  })

  return {
    rowOf,
    get: (app_id: string): PreviewSettings => view(rowOf(app_id)),
    change: (
      actor: Actor,
      { id, project_id }: { id: string; project_id: string },
      body: PreviewSettingsChange,
    ) =>
      db.tx(() => {
        const before = rowOf(id)
        const row: SettingsRow = {
          ...before,
          enabled: Number(body.enabled ?? before.enabled),
          max_previews: body.limit ?? before.max_previews,
          ttl_seconds: body.ttl_seconds === undefined ? before.ttl_seconds : body.ttl_seconds,
          domain_pattern: body.domain_pattern ?? before.domain_pattern,
          forks: body.forks ?? before.forks,
          databases: Number(body.databases ?? before.databases),
          env: body.env === undefined ? before.env : sealEnv(before, body.env),
          updated_at: clock.iso(),
        }
        repository.saveSettings(row)
        events.append({
          type: 'preview.settings_changed',
          project_id,
          app_id: id,
          actor_id: actor.user_id || null,
          payload: { app_id: id, changed: Object.keys(body) },
        })
        audit.record(actor, {
          action: 'preview.settings',
          resource_type: 'app',
          resource_id: id,
          project_id,
          before: audited(before),
          after: audited(row),
        })
        return view(row)
      }),
    /** What the previews of an app get beside its own variables. */
    variables: (app_id: string): ReleaseVariables =>
      Object.fromEntries(
        [...openEnv(rowOf(app_id))].map(([key, kept]) => [key, { ...kept, build: true, runtime: true }]),
      ),
  }
}
export type PreviewSettingsService = ReturnType<typeof createPreviewSettings>
