import { changedColumns, sourceOf } from '#server/apps/configuration'
import { faultOf } from '#server/cron/slots'
import type { DatabaseEngine } from '#server/databases/engine'
import { ENGINES } from '#server/databases/engines'
import { lineOf, wayTo } from '#server/databases/versions'
import { ApiError } from '#server/kernel/errors'
import type { Change } from '#server/project-file/diff'
import { domainName, type Item, keyOf } from '#server/project-file/items'
import { isWithin } from '#server/kernel/mount-path'
import { dataOf } from '../client/api.ts'
import { all } from '../client/apps.ts'
import { EXIT } from '../client/exit-codes.ts'
import type { Session } from '../client/session.ts'
import { CommandError } from '../terminal.ts'
import type { LiveProject } from './live.ts'

type Fields = Record<string, any>
/** What the server would refuse of a plan, by change; the text follows the name of the thing. */
export type Refusals = ReadonlyMap<Change, string>

/** What else there is on the server, as far as this user may know. */
interface Elsewhere {
  /** Names of apps of other projects. */
  apps: ReadonlySet<string>
  /** Whose a name with its path is, whether in this project, and whether it is proven to be. */
  domains: readonly { place: string; app: string; is_here: boolean; is_proven: boolean }[]
}
async function readElsewhere({ api }: Session, live: LiveProject): Promise<Elsewhere> {
  const [apps, domains] = await Promise.all([
    all((query) => dataOf(api.GET('/api/apps', { params: { query } }))),
    all((query) => dataOf(api.GET('/api/domains', { params: { query } }))),
  ])
  const here = new Set(live.items.filter(({ kind }) => kind === 'app').map(({ id }) => id))
  const names = new Map(apps.map(({ id, name }) => [id, name]))
  return {
    apps: new Set(apps.filter(({ id }) => !here.has(id)).map(({ name }) => name)),
    domains: domains.map((row) => ({
      place: domainName(row),
      app: names.get(row.app_id) ?? row.app_id,
      is_here: here.has(row.app_id),
      is_proven: row.status === 'verified' || row.status === 'active',
    })),
  }
}

/** Says what a check of the server throws. */
function refusalOf(check: () => unknown): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}

/** Everything as it would be: what is wanted, and of what is there what stays. */
class World {
  readonly #items = new Map<string, Item>()
  readonly live: LiveProject
  readonly elsewhere: Elsewhere
  constructor(live: LiveProject, changes: readonly Change[], prunes: boolean, elsewhere: Elsewhere) {
    this.live = live
    this.elsewhere = elsewhere
    for (const item of live.items) this.#items.set(keyOf(item), item)
    for (const { action, item, live: now } of changes)
      if (action !== 'extra')
        this.#items.set(keyOf(item), { ...item, fields: { ...now?.fields, ...item.fields } })
      else if (prunes) this.#items.delete(keyOf(item))
  }
  has(kind: Item['kind'], name: string): boolean {
    return this.#items.has(keyOf({ kind, name }))
  }
  find(kind: Item['kind'], name: string, of?: string): Fields | undefined {
    return this.#items.get(keyOf({ kind, name, ...(of === undefined ? {} : { of }) }))?.fields
  }
  all(kind: Item['kind'], of?: string): Item[] {
    return [...this.#items.values()].filter(
      (item) => item.kind === kind && (of === undefined || item.of === of),
    )
  }
}
type Check = (change: Change, world: World) => string | undefined

const destinationFault = (name: unknown, { live }: World): string | undefined =>
  typeof name === 'string' && !live.destinations.has(name)
    ? `destination: there is no storage provider ${name}.`
    : undefined

const database: Check = ({ item: { fields }, live, fields: changed }, world) => {
  if (changed.some(({ field }) => field === 'engine') && live)
    return `engine: stays ${String(live.fields.engine)}. Make another database, and move the data with a dump.`
  const engine: DatabaseEngine | undefined = ENGINES.find(
    ({ name }) => name === (fields.engine ?? live?.fields.engine),
  )
  const to = changed.find(({ field }) => field === 'version')?.to
  const version =
    engine && typeof to === 'string'
      ? refusalOf(() => (live ? wayTo(engine, String(live.fields.version), to) : lineOf(engine, to)))
      : undefined
  const archive = fields.point_in_time as Fields | undefined
  if (version) return version
  if (archive?.enabled && engine && engine.name !== 'postgres')
    return `point_in_time: is not possible with ${engine.label}, only with PostgreSQL.`
  return destinationFault(archive?.destination, world)
}
const app: Check = ({ action, item, live, fields }, { elsewhere }) => {
  if (action === 'update') {
    const row = { compose: null, ...live!.fields }
    const body = Object.fromEntries(fields.map(({ field, to }) => [field, to]))
    return refusalOf(() => changedColumns(row as never, body))
  }
  if (elsewhere.apps.has(item.name))
    return 'the name is taken by an app of another project; names of apps are unique on a server.'
  return refusalOf(() => sourceOf({ name: item.name, ...item.fields } as never))
}
const volume: Check = ({ action, fields }) =>
  action === 'update'
    ? `${fields.map(({ field }) => field).join(', ')}: cannot be changed. Make another volume, and copy the data over.`
    : undefined
const domain: Check = ({ action, item }, { elsewhere }) => {
  if (action !== 'create') return undefined
  const taken = elsewhere.domains.find(
    ({ place, is_here, is_proven }) => place === item.name && (is_here || is_proven),
  )
  return taken && `is a domain of the app ${taken.app} already. Remove it there first.`
}
const cron: Check = ({ item: { fields }, live }) => {
  const whole: Fields = { timezone: 'UTC', ...live?.fields, ...fields }
  if ((whole.command == null) === (whole.http == null))
    return 'command: or http must be given, and only one of the two.'
  const fault = faultOf(whole.expression, whole.timezone, Date.now())
  return fault && `expression: ${fault}`
}
const backup: Check = ({ item: { fields }, live }, world) => {
  const { target, of, destination } = { ...live?.fields, ...fields } as Fields
  const is_there = world.has(target, of) || (target === 'volume' && world.live.volumes.has(of))
  if (!is_there) return `of: there is no ${target} ${of} in this project.`
  return destinationFault(destination, world)
}
const link: Check = ({ item }, world) => {
  const owner = item.of!
  if (!world.has('database', item.name)) return 'there is no such database in this project.'
  const { key } = item.fields
  const other = world
    .all('database link', owner)
    .find((one) => one.name !== item.name && one.fields.key === key)
  if (other) return `the database ${other.name} gives ${owner} the variable ${String(key)} already.`
  return world.find('variable', String(key), owner)
    ? `${owner} has a variable ${String(key)} of its own, which would count instead of the link.`
    : undefined
}
/** Instances that would write to a volume of one writer. */
function writersOf(owner: string, world: World): number {
  const { processes = {}, replicas = 1 } = world.find('app', owner) ?? {}
  const { web, ...others } = processes as Record<string, Fields>
  const counts = Object.values(others).map((one) => Number(one.replicas ?? 1))
  return counts.reduce((sum, count) => sum + count, Number(web?.replicas ?? replicas))
}
const mount: Check = ({ item }, world) => {
  const owner = item.of!
  const near = world
    .all('mount', owner)
    .find(({ name }) => name !== item.name && (isWithin(name, item.name) || isWithin(item.name, name)))
  if (near) return `overlaps with the mount at ${near.name}; mounts lie side by side.`
  const { volume: name, read_only } = item.fields
  if (typeof name !== 'string') return undefined
  const found = world.find('volume', name)
  // One of a compose file: only the server knows who writes it.
  if (!found && world.live.volumes.has(name)) return undefined
  if (!found) return `there is no volume ${name} in this project.`
  if (read_only === true || found.access === 'shared') return undefined
  const other = world
    .all('mount')
    .find((one) => one.of !== owner && one.fields.volume === name && one.fields.read_only !== true)
  if (other)
    return `the volume ${name} is written by ${other.of}, and only one may. Mount it read_only, or use access shared.`
  const count = writersOf(owner, world)
  return count > 1
    ? `${owner} would run ${count} instances, and only one may write to the volume ${name}. Use fewer, or access shared.`
    : undefined
}
const CHECKS: Partial<Record<Item['kind'], Check>> = {
  database,
  volume,
  app,
  domain,
  mount,
  backup,
  'cron job': cron,
  'database link': link,
}

/** What the server would refuse, found before anything is sent. What it alone can know, it says when it is asked. */
export async function refusalsOf(
  session: Session,
  live: LiveProject,
  changes: readonly Change[],
  prunes: boolean,
): Promise<Refusals> {
  if (changes.every(({ action }) => action === 'extra')) return new Map()
  const world = new World(live, changes, prunes, await readElsewhere(session, live))
  return new Map(
    changes.flatMap((change) => {
      const fault = change.action === 'extra' ? undefined : CHECKS[change.item.kind]?.(change, world)
      return fault === undefined ? [] : [[change, fault] as const]
    }),
  )
}

const SOURCES = ['source', 'git_url', 'image', 'dockerfile', 'compose']
/**
 * What of a move is about an app that is there already and comes from elsewhere: what moves in
 * replaces nobody's app, while a call that goes on where one broke off finds what that one made.
 */
export const clashesOf = (changes: readonly Change[]): Refusals =>
  new Map(
    changes
      .filter(
        ({ action, item, fields }) =>
          action === 'update' && item.kind === 'app' && fields.some(({ field }) => SOURCES.includes(field)),
      )
      .map((change) => [
        change,
        'is another app, which is here already. Move into another project with --project, or give it another name in the file that --output writes.',
      ]),
  )

/** Ends before anything is changed when something of a plan would be refused. */
export function requireNoRefusals(refusals: Refusals): void {
  if (refusals.size === 0) return
  const lines = [...refusals].map(([{ item }, text]) => {
    const of = item.of === undefined ? '' : ` of ${item.of}`
    return `${item.kind} ${item.name}${of}: ${text}`
  })
  throw new CommandError(`${lines.join('\n')}\nNothing was changed.`, EXIT.REFUSED)
}
