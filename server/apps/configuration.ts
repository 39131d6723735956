import { invalid } from '#server/kernel/errors'
import { type AppColumns, type AppRow, type AppSource, CHANGEABLE } from './repository.ts'
import type { AppChange, NewApp } from './schema.ts'
import type { BuildSettings, HealthCheck, Limits, Processes } from './configuration-schema.ts'

/** What a release is made from: the app's configuration as plain values. */
export interface Configuration extends AppSource {
  build: BuildSettings
  port: number | null
  health_check: HealthCheck
  replicas: number
  limits: Limits
  processes: Processes
}

export function configurationOf(row: AppRow): Configuration {
  return {
    // A template is deployed as the compose file that it is.
    source: row.source === 'template' ? 'compose' : row.source,
    git_url: row.git_url,
    branch: row.branch,
    image: row.image,
    dockerfile: row.dockerfile,
    compose: row.compose,
    compose_path: row.compose_path,
    base_directory: row.base_directory,
    build: JSON.parse(row.build) as BuildSettings,
    port: row.port,
    health_check: JSON.parse(row.health_check) as HealthCheck,
    replicas: row.replicas,
    limits: JSON.parse(row.limits) as Limits,
    processes: JSON.parse(row.processes) as Processes,
  }
}

/** Fields in which two configurations differ; sorted. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  return (Object.keys(after) as (keyof Configuration)[])
    .filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
    .sort()
}

/** Everything that a change of an app's settings made different; sorted. */
export function changedSettings(before: AppRow, after: AppRow): string[] {
  const configuration = configurationOf(after)
  // What no release keeps holds at once.
  const of_the_app = CHANGEABLE.filter((key) => !(key in configuration) && before[key] !== after[key])
  return [...changedKeys(configurationOf(before), configuration), ...of_the_app].sort()
}

/** Checks of texts that depend on the installation's policy; each throws a 422 that names the field. */
export interface SourceChecks {
  git_url(text: string): void
  branch(text: string): void
  image(text: string): void
}

/** Which source a new app has; exactly one must be given. */
export function sourceOf(body: NewApp): 'git' | 'image' | 'dockerfile' | 'compose' | 'upload' {
  const given = (
    [
      ['git', body.git_url],
      ['image', body.image],
      ['dockerfile', body.dockerfile],
      ['compose', body.compose],
    ] as const
  )
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name)
  const field = {
    git: 'git_url',
    image: 'image',
    dockerfile: 'dockerfile',
    compose: 'compose',
    upload: 'source',
  } as const
  if (given.length > 1)
    throw invalid(
      field[given[1]!],
      `cannot be given together with ${field[given[0]!]}; an app has one source.`,
    )
  if (body.source === 'upload') {
    if (given.length) throw invalid(field[given[0]!], 'cannot be given when source is upload.')
    return 'upload'
  }
  const [only] = given
  const wants_compose = body.source === 'compose' || (body.compose_path ?? null) !== null
  if (wants_compose && body.compose !== undefined && body.compose_path)
    throw invalid('compose_path', 'cannot be given together with compose.')
  // The file is in the repository.
  if (wants_compose && only === 'git' && body.source !== 'git') return 'compose'
  if (!only)
    throw invalid(
      body.source ? field[body.source] : 'git_url',
      'is required; or give image, dockerfile, compose, or source: "upload".',
    )
  if (body.source && body.source !== only)
    throw invalid('source', `is ${body.source}, but ${field[only]} is given.`)
  return only
}

export function checkSource(body: NewApp | AppChange, checks: SourceChecks): void {
  if (body.git_url !== undefined) checks.git_url(body.git_url)
  if (body.branch) checks.branch(body.branch)
  if (body.image !== undefined) checks.image(body.image)
}

/** Columns of a new app. */
export function newColumns(id: string, project_id: string, body: NewApp, at: string): AppColumns {
  const source = sourceOf(body)
  return {
    id,
    name: body.name,
    project_id,
    preview_id: null,
    source,
    status: source === 'upload' ? 'stopped' : 'building',
    git_url: body.git_url ?? null,
    branch: body.branch ?? null,
    image: body.image ?? null,
    dockerfile: body.dockerfile ?? null,
    compose: body.compose ?? null,
    compose_path: body.compose_path ?? null,
    base_directory: body.base_directory ?? '.',
    build: JSON.stringify(body.build ?? {}),
    port: body.port ?? null,
    health_check: JSON.stringify(body.health_check ?? {}),
    replicas: body.replicas ?? 1,
    limits: JSON.stringify(body.limits ?? {}),
    processes: JSON.stringify(body.processes ?? {}),
    auto_deploy: body.auto_deploy === false ? 0 : 1,
    watch_paths: JSON.stringify(body.watch_paths ?? []),
    soak_seconds: body.soak_seconds ?? 10,
    ssh_key_id: body.ssh_key_id ?? null,
    git_credential_id: body.git_credential_id ?? null,
    node_id: body.node_id ?? null,
    created_at: at,
    updated_at: at,
  }
}

/** Columns that a change sets. A source field of another kind of app is refused. */
export function changedColumns(row: AppRow, body: AppChange): Record<string, unknown> {
  for (const [field, source] of [
    ['git_url', 'git'],
    ['image', 'image'],
    ['dockerfile', 'dockerfile'],
  ] as const) {
    if (field === 'git_url' && row.source === 'compose' && row.compose === null) continue
    if (body[field] !== undefined && row.source !== source)
      throw invalid(field, `cannot be set: the source of this app is ${row.source}.`)
  }
  if (body.compose !== undefined && row.compose === null)
    throw invalid('compose', 'cannot be set: the compose file of this app is not inline.')
  if (body.compose_path != null && (row.source !== 'compose' || row.compose !== null))
    throw invalid('compose_path', 'cannot be set: this app has no compose file in a repository.')
  const json = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value))
  return {
    name: body.name,
    git_url: body.git_url,
    branch: body.branch,
    image: body.image,
    dockerfile: body.dockerfile,
    compose: body.compose,
    compose_path: body.compose_path,
    base_directory: body.base_directory,
    build: json(body.build),
    port: body.port,
    health_check: json(body.health_check),
    replicas: body.replicas,
    limits: json(body.limits),
    processes: json(body.processes),
    auto_deploy: body.auto_deploy === undefined ? undefined : Number(body.auto_deploy),
    watch_paths: json(body.watch_paths),
    soak_seconds: body.soak_seconds,
    ssh_key_id: body.ssh_key_id,
    git_credential_id: body.git_credential_id,
    node_id: body.node_id,
  }
}
