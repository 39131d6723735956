import type { Change } from '#server/project-file/diff'
import type { Item } from '#server/project-file/items'
import { ApiFault } from '../client/api.ts'
import type { Session } from '../client/session.ts'
import { CommandError } from '../terminal.ts'
import type { SecretValues } from './secrets.ts'

type Fields = Record<string, unknown>
/** What changes are sent with: the ids of what is there and of what was made meanwhile. */
export interface Sender {
  session: Session
  project_id: string
  secrets: SecretValues
  idOf(kind: Item['kind'] | 'storage provider', name: string): string
}

/** One call of the API; its refusal says what it was about. */
export async function call<T = any>(
  { session }: Pick<Sender, 'session'>,
  item: Pick<Item, 'kind' | 'of' | 'name'>,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  try {
    const answer = await session.send(path, {
      method,
      ...(body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    return ((await answer.json()) as { data: T }).data
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error
    const of = item.of === undefined ? '' : ` of ${item.of}`
    throw new CommandError(`${item.kind} ${item.name}${of}: ${error.message}`, error.exit_code, {
      cause: error,
    })
  }
}

const changedFields = ({ fields }: Change): Fields =>
  Object.fromEntries(fields.map(({ field, to }) => [field, to]))
/** A variable with its value, where the file or the secrets have one. */
function variableBody(change: Change, { secrets }: Sender): Fields {
  const secret = change.item.fields.secret === true ? secrets.of(change.item) : undefined
  const is_new = change.action === 'create'
  return {
    ...(is_new ? { secret: change.item.fields.secret ?? false } : {}),
    ...changedFields(change),
    ...(is_new && secret !== undefined ? { value: secret } : {}),
  }
}

type Act = (change: Change, sender: Sender) => Promise<{ id?: string } | undefined>
interface Acts {
  create: Act
  update: Act
  extra: Act
}
const at = (base: string, { live }: Change): string => `${base}/${live!.id!}`
/** The usual three calls of a resource with an id of its own. */
const resource = (
  base: string,
  body: (change: Change, sender: Sender) => Fields,
  changed: (change: Change, sender: Sender) => Fields = changedFields,
): Acts => ({
  create: (change, sender) => call(sender, change.item, 'POST', base, body(change, sender)),
  update: (change, sender) => call(sender, change.item, 'PUT', at(base, change), changed(change, sender)),
  extra: (change, sender) => call(sender, change.item, 'DELETE', at(base, change)),
})
const appPath = ({ item }: Change, sender: Sender) => `/api/apps/${sender.idOf('app', item.of!)}`

const domains = resource('/api/domains', ({ item }, sender) => ({
  ...item.fields,
  app_id: sender.idOf('app', item.of!),
}))
/** The API takes the id of a destination, the file its name. */
function withDestination({ destination, ...rest }: Fields, sender: Sender): Fields {
  if (destination === undefined) return rest
  const id = destination === null ? null : sender.idOf('storage provider', String(destination))
  return { ...rest, destination_id: id }
}
const withArchive = (fields: Fields, sender: Sender): Fields => ({
  ...fields,
  ...(fields.point_in_time ? { point_in_time: withDestination(fields.point_in_time as Fields, sender) } : {}),
})
const backups = resource(
  '/api/backup-schedules',
  ({ item: { name, fields } }, sender) => {
    const { of, target, ...rest } = fields
    const kind = target as 'app' | 'database' | 'volume'
    return { name, target, target_id: sender.idOf(kind, String(of)), ...withDestination(rest, sender) }
  },
  (change, sender) => withDestination(changedFields(change), sender),
)
function sendMount(change: Change, sender: Sender, more: Fields = {}) {
  const { volume, ...rest } = change.item.fields
  return call(sender, change.item, 'POST', `${appPath(change, sender)}/mounts`, {
    path: change.item.name,
    ...(volume === undefined ? {} : { volume_id: sender.idOf('volume', String(volume)) }),
    ...more,
    ...rest,
  })
}
/** A mount is made and removed, never changed: another one takes its place, in one call. */
const mounts: Acts = {
  create: (change, sender) => sendMount(change, sender),
  update(change, sender) {
    const [to, from] = [change.item.fields, change.live!.fields]
    const is_file = to.volume === undefined
    const is_same_kind = is_file === (from.volume === undefined)
    // What the file leaves out stays as it is.
    const kept = is_file ? { mode: from.mode } : { read_only: from.read_only }
    return sendMount(change, sender, { replace: true, ...(is_same_kind ? kept : {}) })
  },
  extra: (change, sender) =>
    call(sender, change.item, 'DELETE', `${appPath(change, sender)}/mounts/${change.live!.id!}`),
}
const sendLink = ({ item }: Change, sender: Sender, more: Fields = {}) =>
  call(sender, item, 'POST', `/api/databases/${sender.idOf('database', item.name)}/links`, {
    app_id: sender.idOf('app', item.of!),
    key: item.fields.key,
    ...more,
  })
const links: Acts = {
  create: (change, sender) => sendLink(change, sender),
  update: (change, sender) => sendLink(change, sender, { replace: true }),
  extra: (change, sender) =>
    call(
      sender,
      change.item,
      'DELETE',
      `/api/databases/${sender.idOf('database', change.item.name)}/links/${sender.idOf('app', change.item.of!)}`,
    ),
}

/** How each kind of thing is made, changed and removed. Shared variables are sent all at once. */
export const ACTS: Readonly<Record<Exclude<Item['kind'], 'shared variable'>, Acts>> = {
  database: resource(
    '/api/databases',
    ({ item }, sender) => ({
      name: item.name,
      project_id: sender.project_id,
      ...withArchive(item.fields, sender),
    }),
    (change, sender) => withArchive(changedFields(change), sender),
  ),
  volume: resource('/api/volumes', ({ item }, { project_id }) => ({
    name: item.name,
    project_id,
    ...item.fields,
  })),
  mount: mounts,
  app: resource('/api/apps', ({ item }, { project_id }) => ({ name: item.name, project_id, ...item.fields })),
  variable: {
    create: (change, sender) =>
      call(sender, change.item, 'POST', `${appPath(change, sender)}/env`, {
        key: change.item.name,
        ...variableBody(change, sender),
      }),
    update: (change, sender) =>
      call(
        sender,
        change.item,
        'PUT',
        `${appPath(change, sender)}/env/${change.item.name}`,
        variableBody(change, sender),
      ),
    extra: (change, sender) =>
      call(sender, change.item, 'DELETE', `${appPath(change, sender)}/env/${change.item.name}`),
  },
  'database link': links,
  domain: {
    ...domains,
    async update(change, sender) {
      const { ssl_mode, hostname: _same, ...rules } = changedFields(change)
      if (ssl_mode !== undefined)
        await call(sender, change.item, 'PUT', `${at('/api/domains', change)}/ssl-mode`, { ssl_mode })
      if (Object.keys(rules).length === 0) return undefined
      return call(sender, change.item, 'PUT', at('/api/domains', change), rules)
    },
  },
  'cron job': resource('/api/cron-jobs', ({ item }, sender) => ({
    app_id: sender.idOf('app', item.of!),
    name: item.name,
    ...item.fields,
  })),
  backup: {
    ...backups,
    async update(change, sender) {
      const moves = change.fields.some(({ field }) => field === 'target' || field === 'of')
      if (!moves) return backups.update(change, sender)
      // A schedule stays with what it copies: another one takes its place.
      const whole = {
        ...change,
        item: { ...change.item, fields: { ...change.live!.fields, ...change.item.fields } },
      }
      const made = await backups.create(whole, sender)
      await backups.extra(change, sender)
      return made
    },
  },
}

/** All that apps share, in one call: what is not named there is removed. */
export async function sendShared(
  changes: readonly Change[],
  live: readonly Item[],
  prune: boolean,
  sender: Sender,
): Promise<void> {
  const about = changes.filter(({ item }) => item.kind === 'shared variable')
  const due = about.filter(({ action }) => action !== 'extra' || prune)
  if (due.length === 0) return
  const body = new Map<string, Fields>(
    live.filter(({ kind }) => kind === 'shared variable').map(({ name }) => [name, { key: name }]),
  )
  for (const change of due) {
    const key = change.item.name
    if (change.action === 'extra') body.delete(key)
    else body.set(key, { key, ...variableBody(change, sender) })
  }
  await call(
    sender,
    { kind: 'shared variable', name: due.map(({ item }) => item.name).join(', ') },
    'PUT',
    `/api/projects/${sender.project_id}/env`,
    { variables: [...body.values()] },
  )
}
