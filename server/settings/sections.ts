import { own } from '#server/kernel/own'
import { invalid } from '#server/kernel/errors'
import { placeOf, requireSamePlace } from '#server/kernel/same-place'
import { MASK } from '#server/kernel/schemas'
import {
  type AcmeSettings,
  DEFAULT_DIRECTORY,
  type DnsProviderSettings,
  type DnsSettings,
  type DomainSettings,
  type SmtpSection,
} from './schema.ts'
import type { ServerSettings } from './server-schema.ts'

/** Every section as it is stored, by its name in answers. */
export interface Sections {
  server: ServerSettings
  domain: DomainSettings
  dns_provider: DnsProviderSettings
  acme: AcmeSettings
  dns: DnsSettings
  smtp: SmtpSection
}
export type SectionName = keyof Sections
export const SECTION_NAMES = [
  'server',
  'domain',
  'dns_provider',
  'acme',
  'dns',
  'smtp',
] as const satisfies readonly SectionName[]

/** What a section is before anybody set it. */
export function defaultSections(build_concurrency: number): Sections {
  return {
    server: {
      name: 'Portreeve',
      build_concurrency,
      audit_retention_days: 365,
      event_retention_days: 90,
      job_retention_days: 90,
      deployment_log_retention_days: 90,
      runtime_log_retention_days: 14,
      runtime_log_max_bytes: 20 * 1024 * 1024,
      unused_image_retention_days: 7,
      build_cache_retention_days: 14,
      build_cache_disk_percent: 20,
      disk_pressure_percent: 85,
      releases_kept: 5,
      default_cpus: null,
      default_memory_bytes: 512 * 1024 * 1024,
      default_project_quotas: {},
      cors_origins: [],
      owners_may_invite: false,
    },
    domain: { dashboard_domain: null, base_domain: null },
    dns_provider: { provider: null, config: {} },
    acme: {
      directory_url: DEFAULT_DIRECTORY,
      email: null,
      eab: null,
      key_type: 'ecdsa',
      challenge: 'http-01',
    },
    dns: { resolvers: [], public_addresses: [], wildcard: false },
    smtp: {
      host: null,
      port: null,
      security: 'starttls',
      username: null,
      password: null,
      from: null,
    },
  }
}

/** A section after a change: what was left out stays as it is, a mask where a secret is set. */
export const changedBy = <T extends object>(before: T, change: { [K in keyof T]?: T[K] | undefined }): T => ({
  ...before,
  ...Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)),
})

/** Values by dotted path. */
export type SecretValues = Record<string, string>

/** The value at a dotted path. */
export const inside = (value: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((at, key) => own(at as Record<string, unknown> | null | undefined, key), value)

/** A copy with the values at dotted paths replaced; a path whose holder is not there is left out. */
export function withValues<T>(value: T, values: Record<string, string | null>): T {
  const copy = structuredClone(value)
  for (const [path, replacement] of Object.entries(values)) {
    const [key = '', ...holders] = path.split('.').reverse()
    const holder = holders.length === 0 ? copy : inside(copy, holders.reverse().join('.'))
    if (holder !== null && holder !== undefined) (holder as Record<string, unknown>)[key] = replacement
  }
  return copy
}
export const masked = <T>(value: T, paths: readonly string[]): T =>
  withValues(value, Object.fromEntries(paths.map((path) => [path, MASK])))

/**
 * Where the secrets of a section go: they are kept only as long as this stays as it was, so that a stored
 * secret cannot be sent elsewhere.
 */
function destinationOf(name: SectionName, value: unknown): string {
  if (name === 'smtp') return JSON.stringify(['host', 'port', 'security'].map((key) => inside(value, key)))
  if (name === 'acme') return JSON.stringify(['directory_url', 'eab.kid'].map((path) => inside(value, path)))
  const config = (inside(value, 'config') ?? {}) as Record<string, unknown>
  return JSON.stringify([inside(value, 'provider'), placeOf(config)])
}

/**
 * The secrets that a section has after a change: those that were sent, and those that are stored and were not
 * sent again.
 * Throws 422 for a mask that stands for nothing, and when a stored one would go elsewhere.
 */
export function secretsAfter(
  name: SectionName,
  paths: readonly string[],
  sent: unknown,
  before: { value: unknown; secrets(): SecretValues },
): SecretValues {
  const places = [destinationOf(name, before.value), destinationOf(name, sent)] as const
  const kept = paths.flatMap((path): [string, string][] => {
    const given = inside(sent, path)
    const holder = path.includes('.') ? inside(sent, path.slice(0, path.lastIndexOf('.'))) : sent
    if (given === null || holder === null || holder === undefined) return []
    if (given !== undefined && typeof given !== 'string') throw invalid(path, 'must be a text.')
    if (given !== undefined && given !== MASK) return [[path, given]]
    const is_stored = inside(before.value, path) === MASK
    if (!is_stored && given === undefined) return []
    if (!is_stored) throw invalid(path, 'is a mask, but nothing is stored. Send the value itself.')
    requireSamePlace(path, ...places)
    return [[path, own(before.secrets(), path)!]]
  })
  return Object.fromEntries(kept)
}
