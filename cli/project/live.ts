import type { Item } from '#server/project-file/items'
import { domainName } from '#server/project-file/items'
import { CommandError } from '../terminal.ts'
import { dataOf, type Schemas } from '../client/api.ts'
import { all } from '../client/apps.ts'
import { EXIT } from '../client/exit-codes.ts'
import type { Session } from '../client/session.ts'

/** A project as it runs. `id` is absent while the project is still to be made. */
export interface LiveProject {
  id?: string
  name: string
  is_default: boolean
  items: Item[]
  /** Storage providers of the installation: ids by name. */
  destinations: ReadonlyMap<string, string>
  /** Ids of all volumes by name: those of compose files too, which are no items since their file makes them. */
  volumes: ReadonlyMap<string, string>
}
type Fields = Record<string, unknown>

const APP_FIELDS = [
  'git_url',
  'branch',
  'image',
  'dockerfile',
  'compose',
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
] as const
const DOMAIN_FIELDS = [
  'hostname',
  'ssl_mode',
  'path',
  'strip_path',
  'port',
  'service',
  'force_https',
  'www',
  'maintenance',
  'headers',
  'hsts',
  'ip_allow',
  'body_limit_bytes',
  'request_timeout_seconds',
  'error_pages',
] as const
const CRON_FIELDS = [
  'expression',
  'timezone',
  'command',
  'timeout_s',
  'overlap',
  'catch_up',
  'retries',
  'retry_delay_s',
  'enabled',
] as const
const BACKUP_FIELDS = ['cron', 'timezone', 'retention', 'encrypted', 'pause_app', 'enabled'] as const

const pick = (row: object, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(row).filter(([name]) => names.includes(name)))

/** A masked value is never compared: a secret is there, or it is not. */
function variableFields(row: {
  value: string | null
  secret: boolean
  comment: string | null
  preview_value?: string | null
  scopes?: string[]
}): Fields {
  const rest = {
    secret: row.secret,
    comment: row.comment,
    ...(row.scopes ? { scopes: row.scopes } : {}),
  }
  return row.secret ? rest : { ...rest, value: row.value, preview_value: row.preview_value ?? null }
}

/** The settings of going back to any second, without how it goes; off is all that is to say when it is off. */
function archiveFields(
  {
    enabled,
    days,
    destination_id,
    encrypted,
  }: { enabled: boolean; days: number; destination_id: string | null; encrypted: boolean },
  providers: ReadonlyMap<string, string>,
): Fields {
  if (!enabled) return { enabled }
  const destination = destination_id === null ? {} : { destination: providers.get(destination_id) }
  return { enabled, days, ...destination, encrypted }
}
/** A volume, or the digest of a file, which those may see who may set it. */
function mountFields(row: Schemas['Mount']): Fields {
  if (row.kind === 'file') return { content: { sha256: row.content_sha256 }, mode: row.mode }
  return { volume: row.volume_name, read_only: row.read_only }
}
/** Mounts of a compose file are not those of the app: their paths begin with the name of a volume. */
const isOwnMount = ({ path }: { path: string }): boolean => path.startsWith('/')

async function itemsOfApp(session: Session, id: string): Promise<Item[]> {
  const { api } = session
  const path = { path: { id } }
  const app = (await dataOf(api.GET('/api/apps/{id}', { params: path }))).data
  const variables = await all((query) =>
    dataOf(api.GET('/api/apps/{id}/env', { params: { ...path, query } })),
  )
  const domains = await all((query) =>
    dataOf(api.GET('/api/domains', { params: { query: { ...query, app_id: id } } })),
  )
  const jobs = await all((query) =>
    dataOf(api.GET('/api/cron-jobs', { params: { query: { ...query, app_id: id } } })),
  )
  const mounts = await all((query) =>
    dataOf(api.GET('/api/apps/{id}/mounts', { params: { ...path, query } })),
  )
  const of = app.name
  return [
    { kind: 'app', name: of, id, fields: { source: app.source, ...pick(app, APP_FIELDS) } },
    ...mounts
      .filter(isOwnMount)
      .map((row): Item => ({ kind: 'mount', of, name: row.path, id: row.id, fields: mountFields(row) })),
    ...variables.map(
      (row): Item => ({ kind: 'variable', of, name: row.key, id: row.id, fields: variableFields(row) }),
    ),
    ...domains
      .filter(({ kind }) => kind !== 'automatic')
      .map(
        (row): Item => ({
          kind: 'domain',
          of,
          name: domainName(row),
          id: row.id,
          fields: pick(row, DOMAIN_FIELDS),
        }),
      ),
    ...jobs
      .filter(({ source: from }) => from === 'api')
      .map((row): Item => {
        const http = row.http ? { http: { url: row.http.url, method: row.http.method } } : {}
        return {
          kind: 'cron job',
          of,
          name: row.name,
          id: row.id,
          fields: { ...pick(row, CRON_FIELDS), ...http },
        }
      }),
  ]
}

async function findProject({ api }: Session, name: string | undefined) {
  const found = await all((query) => dataOf(api.GET('/api/projects', { params: { query } })))
  const fitting = found.filter((one) => (name === undefined ? one.is_default : one.name === name))
  if (fitting.length > 1)
    throw new CommandError(`Several projects are called ${name}. Give them names of their own.`, EXIT.USAGE)
  return fitting[0]
}

async function readDatabases({ api }: Session, project_id: string) {
  const listed = await all((query) => dataOf(api.GET('/api/databases', { params: { query } })))
  return Promise.all(
    listed
      .filter((one) => one.project_id === project_id)
      .map(
        async ({ id }) =>
          (
            await dataOf(
              api.GET('/api/databases/{id}', { params: { path: { id }, query: { credentials: 'masked' } } }),
            )
          ).data,
      ),
  )
}

/** Ids of the storage providers of the installation, by name. */
const readDestinations = async ({ api }: Session): Promise<ReadonlyMap<string, string>> =>
  new Map(
    (await all((query) => dataOf(api.GET('/api/storage-providers', { params: { query } })))).map(
      ({ id, name }) => [name, id],
    ),
  )

/** All of a project that a file can say. */
export async function readLive(session: Session, name: string | undefined): Promise<LiveProject> {
  const { api } = session
  const project = await findProject(session, name)
  if (!project) {
    if (name === undefined)
      throw new CommandError('You are in no default project: name one in the file.', EXIT.NOT_FOUND)
    return {
      name,
      is_default: false,
      items: [],
      destinations: await readDestinations(session),
      volumes: new Map(),
    }
  }
  const { id } = project
  const apps = await all((query) =>
    dataOf(api.GET('/api/apps', { params: { query: { ...query, project_id: id } } })),
  )
  const of_apps = (await Promise.all(apps.map((app) => itemsOfApp(session, app.id)))).flat()
  const databases = await readDatabases(session, id)
  const shared = await all((query) =>
    dataOf(api.GET('/api/projects/{id}/env', { params: { path: { id }, query } })),
  )
  const volumes = await all((query) =>
    dataOf(api.GET('/api/volumes', { params: { query: { ...query, project_id: id } } })),
  )
  const destinations = await readDestinations(session)
  const providers = new Map([...destinations].map(([provider, of_it]) => [of_it, provider]))
  const names = new Map([...apps, ...databases, ...volumes].map((one) => [one.id, one.name]))
  const schedules = await all((query) => dataOf(api.GET('/api/backup-schedules', { params: { query } })))
  const items: Item[] = [
    ...shared.map(
      (row): Item => ({ kind: 'shared variable', name: row.key, id: row.id, fields: variableFields(row) }),
    ),
    ...databases.map(
      (row): Item => ({
        kind: 'database',
        name: row.name,
        id: row.id,
        fields: {
          ...pick(row, ['engine', 'version', 'limits', 'public']),
          ...(row.public ? { public_port: row.public_port } : {}),
          ...(row.point_in_time ? { point_in_time: archiveFields(row.point_in_time, providers) } : {}),
        },
      }),
    ),
    ...volumes
      .filter((row) => row.status !== 'deleting' && row.mounts.every(isOwnMount))
      .map(
        (row): Item => ({
          kind: 'volume',
          name: row.name,
          id: row.id,
          fields: pick(row, ['access', 'size_bytes']),
        }),
      ),
    ...of_apps,
    ...databases.flatMap((row) =>
      row.links.map(
        (link): Item => ({
          kind: 'database link',
          of: names.get(link.app_id) ?? link.app_id,
          name: row.name,
          id: link.app_id,
          fields: { key: link.key },
        }),
      ),
    ),
    ...schedules
      .filter((row) => row.project_id === id)
      .map(
        (row): Item => ({
          kind: 'backup',
          name: row.name,
          id: row.id,
          fields: {
            target: row.target,
            of: names.get(row.target_id ?? '') ?? row.target_id,
            destination: providers.get(row.destination_id ?? '') ?? null,
            ...pick(row, BACKUP_FIELDS),
          },
        }),
      ),
  ]
  return {
    id,
    name: project.name,
    is_default: project.is_default,
    items,
    destinations,
    volumes: new Map(volumes.filter(({ status }) => status !== 'deleting').map((row) => [row.name, row.id])),
  }
}
