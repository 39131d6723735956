import type { Domain, DomainStatus } from './schema.ts'

/** A row of `domains`; JSON columns are read by `rulesOf` and `findingOf`. */
export interface DomainRow {
  id: string
  app_id: string
  project_id: string
  hostname: string
  counterpart: string | null
  kind: Domain['kind']
  status: DomainStatus
  path: string
  strip_path: number
  port: number | null
  /** Service of a compose app that it leads to; null for the one with the app's own name. */
  service: string | null
  ssl_mode: Domain['ssl_mode']
  force_https: number
  www: Domain['www']
  maintenance: number
  headers: string
  hsts: string | null
  ip_allow: string
  error_pages: string
  basic_auth: string | null
  body_limit_bytes: number | null
  request_timeout_seconds: number | null
  token: string
  finding: string | null
  checks: number
  checked_at: string | null
  next_check_at: string | null
  verified_at: string | null
  created_at: string
  updated_at: string
}

/** Columns that change after a domain was added; keys of an update come from this list only. */
export const CHANGEABLE = [
  'counterpart',
  'path',
  'strip_path',
  'port',
  'service',
  'ssl_mode',
  'force_https',
  'www',
  'maintenance',
  'headers',
  'hsts',
  'ip_allow',
  'error_pages',
  'basic_auth',
  'body_limit_bytes',
  'request_timeout_seconds',
  'finding',
  'checks',
  'checked_at',
  'next_check_at',
  'verified_at',
] as const
export type DomainColumns = Partial<Pick<DomainRow, (typeof CHANGEABLE)[number]>>

/** All columns. */
export const COLUMNS = [
  'id',
  'app_id',
  'project_id',
  'hostname',
  'kind',
  'status',
  'token',
  ...CHANGEABLE,
  'created_at',
  'updated_at',
]

/** Rows for one of `@names`. */
export const NAMED =
  '(hostname IN (SELECT value FROM json_each(@names)) OR counterpart IN (SELECT value FROM json_each(@names)))'
