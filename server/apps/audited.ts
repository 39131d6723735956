import type { AppRow } from './repository.ts'

/** Columns whose values before and after a change stand in the audit trail. */
const AUDITED = [
  'name',
  'project_id',
  'status',
  'source',
  'git_url',
  'branch',
  'image',
  'compose_path',
  'base_directory',
  'build',
  'port',
  'health_check',
  'replicas',
  'limits',
  'processes',
  'auto_deploy',
  'watch_paths',
  'soak_seconds',
  'ssh_key_id',
  'git_credential_id',
  'node_id',
] as const

export const audited = (row: AppRow) => Object.fromEntries(AUDITED.map((key) => [key, row[key]]))
