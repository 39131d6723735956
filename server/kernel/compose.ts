import { NO_SHARE, sumOf } from './shares.ts'
import type { Channel } from './channels.ts'
import type { Clock } from './clock.ts'
import type { ClockTrust } from './clock-trust.ts'
import type { Db } from './db.ts'
import { forgetAll } from './forget.ts'
import type { Jobs } from './jobs/jobs.ts'
import type { Log } from './log.ts'
import type { AnyModule, Declared, ResourceKind } from './module.ts'
import { createTableSource, openTo, type ResourceSource } from './resources.ts'
import { createSchedules } from './schedules.ts'

/** The services that a list of modules makes, by name. */
export type ServicesOf<L extends readonly AnyModule[]> = {
  [M in L[number] as M['name']]: ReturnType<M['create']>
}
type UseOf<M> = M extends { create: (base: any, use: infer U) => unknown } ? (use: U) => void : never
/** All that the modules of a list ask of one another. */
export type NeedsOf<L extends readonly AnyModule[]> =
  UseOf<L[number]> extends (use: infer N) => void ? N : unknown
type Lacking<Given, Needed> = {
  [K in keyof Needed]: K extends keyof Given ? (Given[K] extends Needed[K] ? never : K) : K
}[keyof Needed]
/** Makes a list that lacks a service a type error which names it. */
export type Complete<L extends readonly AnyModule[]> = [Lacking<ServicesOf<L>, NeedsOf<L>>] extends [never]
  ? unknown
  : { 'No module of the list makes this service, or makes another type': Lacking<ServicesOf<L>, NeedsOf<L>> }

/** What composing itself needs of the base. */
export interface ComposeBase {
  db: Db
  clock: Clock
  clock_trust: ClockTrust
  log: Log
  jobs: Jobs
}
export interface Composed<S> {
  services: S
  declared: Declared
  /** Runs what is due of a task; see `tasks/`. */
  wake(task: string): Promise<Record<string, unknown>>
  /** Forgets what is past its time, piece by piece; returns how much, by what it is. */
  cleanup(): Promise<Record<string, number>>
  start(): Promise<void>
  stop(): Promise<void>
}

const prefixOf = (id: string): string => id.split('_')[0]!
const SHOWN = { overview: ['everywhere'], search: ['everywhere', 'search'] } as const
export const poolsOf = (modules: readonly AnyModule[]): Record<string, number> =>
  Object.assign({}, ...modules.map(({ pools }) => pools)) as Record<string, number>
export const sealedOf = (modules: readonly AnyModule[]) => modules.flatMap(({ sealed }) => sealed ?? [])
export const tagsOf = (modules: readonly AnyModule[]) => modules.flatMap(({ tags }) => tags ?? [])

/** Fails the start when two modules claim the same name, noun, pool or channel. */
function requireDistinct(what: string, names: readonly string[]): void {
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw new Error(`Two modules declare the ${what} «${twice}».`)
}

/** Services by name; one that is asked for too early says so instead of being undefined. */
function lateServices(modules: readonly AnyModule[], made: Map<string, unknown>): Record<string, unknown> {
  const use: Record<string, unknown> = {}
  for (const { name } of modules)
    Object.defineProperty(use, name, {
      enumerable: true,
      get() {
        if (!made.has(name))
          throw new Error(
            `The service «${name}» was asked for before it is made. Ask for it in a function that runs later, or put its module earlier in the list.`,
          )
        return made.get(name)
      },
    })
  return use
}

function createDeclared(
  modules: readonly AnyModule[],
  db: Db,
  own: (module: AnyModule) => unknown,
  { channels, images }: Pick<Declared, 'channels' | 'images'>,
): Declared {
  const kinds: readonly (ResourceKind & { source: ResourceSource })[] = modules.flatMap(({ resources }) =>
    (resources ?? []).map((kind) => ({
      ...kind,
      source: createTableSource(db, { ...kind, kind: kind.noun }),
    })),
  )
  const sources = Object.fromEntries(
    Object.entries(SHOWN).map(([where, shown]) => [
      where,
      kinds
        .filter(({ listed = 'everywhere' }) => (shown as readonly string[]).includes(listed))
        .map(({ source }) => source),
    ]),
  ) as Record<keyof typeof SHOWN, ResourceSource[]>
  const parts = new Map(
    modules
      .flatMap((module) => module.parts ?? [])
      .map(({ prefix, table, of }) => [prefix as string, `SELECT ${of} FROM ${table} WHERE id = ?`]),
  )
  /** What something is a part of: a deployment of an app, which may run a preview. */
  const wholeOf = (id: string): string => {
    const query = parts.get(prefixOf(id))
    const whole = query && (db.sql(query).pluck().get(id) as string | null | undefined)
    return whole && prefixOf(whole) !== prefixOf(id) ? wholeOf(whole) : id
  }
  /** What has a name, by how its ids begin: who lists a hundred jobs asks for a hundred names. */
  const named = new Map(
    kinds
      .filter(({ source }) => sources.search.includes(source))
      .map(({ prefix, source }) => [prefix as string, source]),
  )
  const locators = new Map(kinds.map(({ noun, source }) => [noun, source.locate]))
  requireDistinct(
    'noun',
    kinds.map(({ noun }) => noun),
  )
  requireDistinct(
    'prefix',
    kinds.map(({ prefix }) => prefix),
  )
  const followers = modules.filter(({ app }) => app)
  const sharing = modules.filter(({ share }) => share)
  const offering = modules.filter(({ offers }) => offers)
  return {
    sources: (where) => sources[where],
    locate: (noun, id) => locators.get(noun)?.(id),
    named(actor, id) {
      const whole = wholeOf(id)
      const source = named.get(prefixOf(whole))
      return source && openTo(actor, source).find(whole)
    },
    nouns: [...locators.keys()],
    sealed: sealedOf(modules),
    tags: tagsOf(modules),
    channels,
    images,
    offered(project_id, name) {
      for (const module of offering) {
        const found = module.offers?.(own(module), project_id, name)
        if (found) return found
      }
      return undefined
    },
    share: (project_id) =>
      sumOf(sharing.map((module) => module.share?.(own(module), project_id) ?? NO_SHARE)),
    app: {
      moved: (id, from) => followers.forEach((module) => module.app?.moved?.(own(module), id, from)),
      deleting: (id) => followers.forEach((module) => module.app?.deleting?.(own(module), id)),
      async history(id, signal) {
        for (const module of followers)
          await forgetAll(() => {
            signal.throwIfAborted()
            return module.app?.history?.(own(module), id) ?? 0
          })
      },
      removed: (id) => followers.forEach((module) => module.app?.removed?.(own(module), id)),
      environment: (app) =>
        Object.assign(
          {},
          ...followers.map((module) => module.app?.environment?.(own(module), app)),
        ) as Record<string, string>,
      *secrets(app) {
        for (const module of followers) yield module.app?.secrets?.(own(module), app) ?? []
      },
      fetch_secrets: (app) =>
        followers.flatMap((module) => module.app?.fetch_secrets?.(own(module), app) ?? []),
    },
  }
}

/**
 * Makes every service of a list, in its order, and joins what the modules declare.
 * @param base what all of them stand on; it is given `modules`, which is what they declare together.
 */
export function compose<const L extends readonly AnyModule[], B extends ComposeBase>(
  modules: L & Complete<L>,
  base: B,
): Composed<ServicesOf<L>> {
  const list = modules as readonly AnyModule[]
  requireDistinct(
    'name',
    list.map(({ name }) => name),
  )
  requireDistinct(
    'pool',
    list.flatMap(({ pools }) => Object.keys(pools ?? {})),
  )
  const made = new Map<string, unknown>()
  const use = lateServices(list, made)
  // Asked too early it throws; a name that no module has is not asked for.
  const own = ({ name }: AnyModule): unknown => Reflect.get(use, name)
  const channels: Channel[] = []
  const declared = createDeclared(list, base.db, own, {
    channels: () => channels,
    images: {
      async needed() {
        const found: string[] = []
        for (const module of list) found.push(...((await module.images?.needed(own(module))) ?? []))
        return found
      },
      removed: (id) => list.forEach((module) => module.images?.removed?.(own(module), id)),
    },
  })
  const full = { ...base, modules: declared }
  for (const module of list) made.set(module.name, module.create(full, use))
  channels.push(...list.flatMap((module) => module.channels?.(own(module), use, full) ?? []))
  requireDistinct(
    'channel',
    channels.map(({ name }) => name),
  )
  for (const module of list)
    for (const job of module.jobs?.(own(module), use, full) ?? []) base.jobs.define(job)
  let cleaning: Promise<Record<string, number>> | undefined
  let is_stopping = false
  async function forgetEverything(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const module of list) {
      const by_age = base.clock_trust.isTrusted() ? module.retention : {}
      for (const [what, forget] of Object.entries({ ...by_age, ...module.bounds })) {
        const count = await forgetAll(() => (is_stopping ? 0 : forget(own(module), use, full)))
        if (count !== undefined) counts[what] = count
      }
    }
    return counts
  }
  /** Whoever asks while it goes on waits for the same. */
  const cleanup = () =>
    (cleaning ??= forgetEverything().finally(() => {
      cleaning = undefined
    }))
  const schedules = createSchedules(
    [
      { name: 'retention', cron: '17 * * * *', task: 'cleanup', run: cleanup },
      ...list.flatMap((module) =>
        (module.schedules ?? []).map(({ name, cron, task = 'cleanup', run }) => ({
          name: `${module.name}.${name}`,
          cron,
          task,
          run: () => run(own(module), use, full),
        })),
      ),
    ],
    base.clock,
    base.log,
  )
  return {
    services: Object.fromEntries(made) as ServicesOf<L>,
    declared,
    wake: schedules.wake,
    cleanup,
    async start() {
      is_stopping = false
      for (const module of list) await module.start?.(own(module), use, full)
    },
    async stop() {
      // It would look into a database that is closed.
      is_stopping = true
      await cleaning?.catch(() => {})
      for (const module of [...list].reverse()) await module.stop?.(own(module), use, full)
    },
  }
}
