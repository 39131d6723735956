import type { Project } from '@/shell/current-project'

type Quotas = Project['quotas']
const GIB = 1024 ** 3

/** Limits of a project as people write them; memory and storage in GiB. */
export const LIMITS = [
  { quota: 'apps', label: 'Apps', unit: 1 },
  { quota: 'domains', label: 'Domains', unit: 1 },
  { quota: 'databases', label: 'Databases', unit: 1 },
  { quota: 'volumes', label: 'Volumes', unit: 1 },
  { quota: 'cpus', label: 'CPU cores', unit: 1 },
  { quota: 'memory_bytes', label: 'Memory (GiB)', unit: GIB },
  { quota: 'storage_bytes', label: 'Storage (GiB)', unit: GIB },
  { quota: 'backup_bytes', label: 'Backups (GiB)', unit: GIB },
] as const
export type Limit = (typeof LIMITS)[number]['quota']
/** A field that was cleared holds an empty text. */
export type LimitFields = Record<Limit, number | string | null>

export const limitsOf = (quotas: Quotas): LimitFields =>
  Object.fromEntries(
    LIMITS.map(({ quota, unit }) => [quota, quotas[quota] == null ? null : quotas[quota] / unit]),
  ) as LimitFields

/** All limits with those that were changed: they are set as a whole, and there may be ones that no field shows. */
export function quotasOf(quotas: Quotas, changes: Partial<LimitFields>): Quotas {
  const next = { ...quotas }
  for (const { quota, unit } of LIMITS) {
    const value = changes[quota]
    if (value === undefined) continue
    const scaled = typeof value === 'number' ? value * unit : null
    next[quota] = scaled !== null && unit > 1 ? Math.round(scaled) : scaled
  }
  return next
}
