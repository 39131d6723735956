import { own } from '#server/kernel/own'
import { NO_SHARE, type Share, sumOf } from '#server/kernel/shares'
import {
  type Actor,
  isAdministrator,
  mayOnlyRead,
  type ProjectRole,
  projectRole,
  visibleProjects,
} from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { badRequest, conflict, forbidden, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { openTo, type ResourceSource } from '#server/kernel/resources'
import { limits, paged, pageOf, type Paging } from '#server/kernel/schemas'
import { isWanted, type Wanted } from '#server/kernel/page'
import { createMembers, type People } from './members.ts'
import { createProjectRepository, type ProjectRow } from './repository.ts'
import { isFixedQuota } from './schema.ts'
import type { NewProject, Project, ProjectChange, ProjectWithCounts, Quotas, Resource } from './schema.ts'

export interface ProjectOptions {
  db: Db
  clock: Clock
  audit: AuditTrail
  events: Events
  /** Late, because people need projects as well. */
  people: () => People
  /** Limits of projects that members make. */
  defaultQuotas: () => Quotas
  /** Every kind of resource that lives in projects; late, because their domains come after. */
  resources: () => readonly ResourceSource[]
  /** What all instances in a project may use together. */
  share: (project_id: string) => Share
  /** Forgets what of a project is no resource and goes with it; in the transaction that deletes it. */
  forget: (actor: Actor, project_id: string) => void
  /** Has the engine's network of a project removed, which nothing uses any more. */
  removeNetwork: (project_id: string) => void
}

/** Name of the project that a fresh installation has. */
const DEFAULT_NAME = 'default'
/** Resources of all kinds that are gathered and ordered for one answer. */
const MOST_SORTED = 5_000
/** Projects that `me` lists at most. */
const MANY = 1_000
const RANK = { viewer: 1, developer: 2, owner: 3 } as const

const SHARED = [
  ['memory_bytes', 'bytes of memory'],
  ['cpus', 'CPU cores'],
] as const
const quotasOf = (row: ProjectRow) => JSON.parse(row.quotas) as Quotas

/** Projects: every resource lives in one, and roles in it decide who may do what. */
export function createProjects(options: ProjectOptions) {
  const { db, clock, audit, events, people, resources, share } = options
  const repository = createProjectRepository(db)
  const members = createMembers({ db, clock, audit, events, repository, people })
  const get = (id: string): ProjectRow => orThrow(repository.find(id), () => notFound('project'))
  const view = (actor: Actor, row: ProjectRow): Project => ({
    id: row.id,
    name: row.name,
    description: row.description,
    is_default: row.is_default === 1,
    role: projectRole(actor, row.id) ?? 'viewer',
    created_at: row.created_at,
    updated_at: row.updated_at,
  })
  /** What this caller may see in overviews of the project. */
  const sourcesFor = (actor: Actor, project_id: string) => {
    const role = mayOnlyRead(actor) ? 'viewer' : (projectRole(actor, project_id) ?? 'viewer')
    return resources()
      .filter(({ access }) => RANK[role] >= RANK[access])
      .map((source) => openTo(actor, source))
  }
  const full = (actor: Actor, row: ProjectRow): ProjectWithCounts => ({
    ...view(actor, row),
    quotas: quotasOf(row),
    counts: Object.fromEntries([
      ...sourcesFor(actor, row.id).map(({ kind, count }) => [kind, count(row.id)]),
      ['member', repository.memberIds(row.id).length],
    ]) as Record<string, number>,
  })
  const requireFreeName = (actor: Actor, name: string, except: string) => {
    // Only among projects that the caller may see: a conflict with another would tell that it exists.
    if (repository.hasName(visibleProjects(actor), name, except))
      throw conflict(`There is a project named ${name} already. Choose another name.`)
  }
  const ensureDefault = (): string => {
    const known = repository.default()
    if (known) return known
    return db.tx(() => {
      const id = repository.default() ?? newId('prj')
      if (!repository.exists(id))
        repository.insert({
          id,
          name: DEFAULT_NAME,
          description: '',
          is_default: 1,
          quotas: '{}',
          created_at: clock.iso(),
          updated_at: clock.iso(),
        })
      return id
    })
  }
  const requireKnownQuota = (name: string) => {
    if (!isFixedQuota(name) && !resources().some(({ quota }) => quota === name))
      throw invalid(`quotas.${name}`, 'is not a quota.')
  }
  /** Throws 409 when volumes and databases hold what they may, as they were measured last. */
  const requireStorage = (project_id: string, remedy = 'Delete data'): void => {
    const most = quotasOf(get(project_id)).storage_bytes
    if (typeof most !== 'number') return
    const held = resources().reduce((sum, source) => sum + (source.storedBytes?.(project_id) ?? 0), 0)
    if (held >= most)
      throw conflict(
        `Volumes and databases of the project may hold ${most} bytes together, and hold ${held}. ${remedy}, or ask an administrator to raise the quota storage_bytes.`,
      )
  }
  /** Those quotas of what instances use that the project has. */
  const limitsOf = (project_id: string) => {
    const quotas = quotasOf(get(project_id))
    return SHARED.flatMap(([name, unit]) => {
      const most = quotas[name]
      return typeof most === 'number' ? [{ name, unit, most }] : []
    })
  }
  const limitedStorage = () =>
    repository.all().flatMap((row) => {
      const { storage_bytes } = quotasOf(row)
      return typeof storage_bytes === 'number' ? [{ id: row.id, storage_bytes }] : []
    })
  const audited = ({ name, description, quotas }: ProjectRow) => ({
    name,
    description,
    quotas: JSON.parse(quotas) as unknown,
  })
  const note = (
    actor: Actor,
    type: string,
    row: ProjectRow,
    before: ProjectRow | null,
    after: ProjectRow | null,
  ) => {
    audit.record(actor, {
      action: type,
      resource_type: 'project',
      resource_id: row.id,
      project_id: row.id,
      before: before && audited(before),
      after: after && audited(after),
    })
    events.append({
      type: `${type}d`,
      project_id: row.id,
      actor_id: actor.user_id || null,
      payload: { name: row.name },
    })
  }
  return {
    members,
    /** The id itself when the project exists: a project is its own scope. */
    projectOf: (id: string): string | undefined => (repository.exists(id) ? id : undefined),
    /** Whether there are projects beside this one. */
    hasOthers: repository.hasOthers,
    default: ensureDefault,
    /** Projects that may only hold so much in volumes and databases. */
    limitedStorage,
    nameOf: (id: string): string | undefined => repository.find(id)?.name,
    rolesOf: repository.rolesOf as (user_id: string) => { project_id: string; role: ProjectRole }[],
    /** What the caller sees in `me`. */
    listFor: (actor: Actor) =>
      repository
        .page(visibleProjects(actor), undefined, MANY, 0)
        .rows.map(({ id, name }) => ({ id, name, role: projectRole(actor, id)! })),
    list(actor: Actor, query: Paging & { q?: string }) {
      const { rows, total } = repository.page(visibleProjects(actor), query.q, ...limits(query))
      return paged({ rows: rows.map((row) => view(actor, row)), total }, query)
    },
    get: (actor: Actor, id: string): ProjectWithCounts => full(actor, get(id)),
    create(actor: Actor, given: NewProject): ProjectWithCounts {
      if (actor.only_projects) throw forbidden('This API key is limited to other projects.')
      return db.tx(() => {
        requireFreeName(actor, given.name, '')
        if (!isAdministrator(actor)) members.requireRoomForOwn(actor.user_id)
        const row: ProjectRow = {
          id: newId('prj'),
          ...given,
          is_default: 0,
          // Else whoever is at the limits of a project makes another one.
          quotas: JSON.stringify(isAdministrator(actor) ? {} : options.defaultQuotas()),
          created_at: clock.iso(),
          updated_at: clock.iso(),
        }
        repository.insert(row)
        note(actor, 'project.create', row, null, row)
        members.insert(actor, row.id, { id: actor.user_id, email: actor.email }, 'owner')
        return full({ ...actor, projects: new Map([...actor.projects, [row.id, 'owner']]) }, row)
      })
    },
    change: (actor: Actor, id: string, change: ProjectChange): ProjectWithCounts =>
      db.tx(() => {
        const before = get(id)
        if (change.quotas && !isAdministrator(actor)) throw forbidden('Only an administrator may set quotas.')
        for (const name of Object.keys(change.quotas ?? {})) requireKnownQuota(name)
        const row: ProjectRow = {
          ...before,
          name: change.name ?? before.name,
          description: change.description ?? before.description,
          quotas: change.quotas ? JSON.stringify(change.quotas) : before.quotas,
          updated_at: clock.iso(),
        }
        requireFreeName(actor, row.name, id)
        repository.update(row)
        note(actor, 'project.update', row, before, row)
        return full(actor, row)
      }),
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        if (row.is_default === 1)
          throw conflict('The default project cannot be deleted: new resources go there.')
        const left = resources()
          .map(({ kind, count }) => ({ kind, number: count(id) }))
          .filter(({ number }) => number > 0)
        if (left.length > 0)
          throw conflict(
            `The project is not empty: ${left.map(({ kind, number }) => `${number} ${kind.replaceAll('_', ' ')}${number === 1 ? '' : 's'}`).join(', ')}. Move or delete them first.`,
          )
        const member_ids = repository.memberIds(id)
        options.forget(actor, id)
        repository.delete(id)
        for (const user_id of member_ids) people().rightsChanged(actor, user_id)
        note(actor, 'project.delete', row, row, null)
        options.removeNetwork(id)
      }),
    /** Everything in a project, kind by kind, newest first. */
    resources(actor: Actor, project_id: string, query: Paging & { kind?: Wanted }) {
      const sources = sourcesFor(actor, project_id).filter(({ kind }) => isWanted(query.kind, kind))
      const [limit, offset, sort] = limits(query)
      if (sort?.length) {
        if (sources.reduce((sum, { count }) => sum + count(project_id), 0) > MOST_SORTED)
          throw badRequest(
            `sort: more than ${MOST_SORTED} resources are not ordered by one field. Narrow them by kind, or leave it out.`,
          )
        const all = sources.flatMap((one): Resource[] => one.list(project_id, one.count(project_id), 0))
        return pageOf(all, query)
      }
      let [wanted, skip] = [limit, offset]
      let total = 0
      const rows: Resource[] = []
      for (const source of sources) {
        const size = source.count(project_id)
        if (wanted > 0 && skip < size) {
          const piece = source.list(project_id, wanted, skip)
          rows.push(...piece)
          wanted -= piece.length
        }
        skip = Math.max(0, skip - size)
        total += size
      }
      return paged({ rows, total }, query)
    },
    /** The number that an administrator has set; undefined without one. */
    quota: (project_id: string, name: keyof Quotas): number | undefined =>
      own(quotasOf(get(project_id)), String(name)) ?? undefined,
    /**
     * Throws 409 when instances of the project may use more than its quotas. Call it in the transaction of the
     * change, once that is made. What was too much `before` and is not more now may stay.
     */
    requireShare(project_id: string, before: Share = NO_SHARE, extra: Share = NO_SHARE): void {
      const limited = limitsOf(project_id)
      if (limited.length === 0) return
      const now = sumOf([share(project_id), extra])
      for (const { name, unit, most } of limited) {
        if (now[name] <= most || now[name] <= before[name]) continue
        throw conflict(
          `Apps and databases of the project may use ${most} ${unit} together, and would use ${now[name]}. Lower limits or replicas, or ask an administrator to raise the quota ${name}.`,
        )
      }
    },
    share,
    /** The same to tell `requireShare` what it was before: nothing where nothing is limited, which asks no app. */
    shareBefore: (project_id: string): Share =>
      limitsOf(project_id).length === 0 ? NO_SHARE : share(project_id),
    requireStorage,
    /**
     * Throws 409 when the project may not have one more of a kind, or so many. Call it in the transaction that
     * creates it.
     */
    requireQuota(project_id: string, kind: string, count = 1): void {
      const source = resources().find((one) => one.kind === kind)
      if (source?.quota === undefined) return
      const most = own(quotasOf(get(project_id)) as Record<string, number | null | undefined>, source.quota)
      if (typeof most === 'number' && source.counted(project_id) + count > most)
        throw conflict(
          `The project may have ${most} ${most === 1 ? source.kind : source.quota} at most. Delete one, or ask an administrator to raise the quota.`,
        )
      if (source.storedBytes) requireStorage(project_id)
    },
  }
}
export type Projects = ReturnType<typeof createProjects>
