import { hostname } from 'node:os'
import { type Actor, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { answeredWithin, shared } from '#server/kernel/deadline'
import { conflict, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Declared } from '#server/kernel/module'
import type { Sort, Wanted } from '#server/kernel/page'
import { limits, paged, pageOf, type Paging } from '#server/kernel/schemas'
import { type HostReading, readHost } from '#server/platform/host/reading'
import { askingEngine } from '#server/platform/engine/asking'
import type { Engine, EngineVersion, Instance } from '#server/platform/engine/engine'
import { checkNode } from './health.ts'
import { createNodeRepository, type NodeRow } from './repository.ts'
import type { Node, NodeChange, NodeHealth, NodeInstance } from './schema.ts'

export interface NodeOptions {
  db: Db
  clock: Clock
  audit: AuditTrail
  events: Pick<Events, 'append'>
  engine: Pick<Engine, 'version' | 'instances'>
  data_directory: string
  modules: Pick<Declared, 'named'>
  /** Where others reach this server. */
  address(): string
}
interface Facts {
  reading: HostReading
  engine: EngineVersion | undefined
  /** Undefined while the engine does not answer. */
  instances: Instance[] | undefined
}

/** An engine that does not answer is told as such, and does not keep the page waiting. */
const ANSWER_MS = 3_000
const SHORT_ID = 12
/** Nodes that one sentence names. */
const MOST_NAMED = 5
const ONLY_ONE = 'This is the only server.'

const sumOf = (instances: readonly Instance[] | undefined, limit: 'cpus' | 'memory_bytes') =>
  instances ? instances.reduce((sum, { limits: given }) => sum + (given?.[limit] ?? 0), 0) : null

/** The servers that run instances. There is one today, the server of Portreeve itself. */
export function createNodes({
  db,
  clock,
  audit,
  events,
  engine,
  data_directory,
  modules,
  address,
}: NodeOptions) {
  const repository = createNodeRepository(db)
  const get = (id: string): NodeRow => {
    const row = repository.find(id)
    if (!row) throw notFound('node')
    return row
  }
  /** The row of this server: made when it is first asked for, and it follows a new host name. */
  function own(): NodeRow {
    const known = repository.own()
    if (known?.name === hostname()) return known
    const at = clock.iso()
    const row: NodeRow = known
      ? { ...known, name: hostname(), updated_at: at }
      : {
          ...{ id: newId('node'), name: hostname(), state: 'ready', labels: '{}' },
          ...{ checked_at: at, last_seen_at: null, created_at: at, updated_at: at },
        }
    if (known) repository.update(row)
    else repository.insert(row)
    return row
  }
  /** One question at a time, whoever asks. */
  const readFacts = shared(async (): Promise<Facts> => {
    const none = () => undefined
    const [reading, version, instances] = await Promise.all([
      readHost(data_directory),
      answeredWithin(ANSWER_MS, engine.version().catch(none), undefined),
      answeredWithin(ANSWER_MS, engine.instances({}).catch(none), undefined),
    ])
    return { reading, engine: version, instances: version && instances }
  })
  const view = (row: NodeRow, { reading, engine: found, instances }: Facts): Node => {
    const running = instances?.filter(({ state }) => state === 'running')
    return {
      id: row.id,
      name: row.name,
      address: address(),
      role: 'manager',
      state: row.state,
      availability: 'active',
      labels: JSON.parse(row.labels) as Record<string, string>,
      capacity: {
        cpus: found?.cpus ?? 0,
        memory_bytes: reading.memory_total_bytes,
        disk_bytes: reading.disk_total_bytes,
      },
      use: {
        memory_bytes: reading.memory_used_bytes,
        disk_bytes: reading.disk_used_bytes,
        load_1m: reading.load_1m,
        instances: running?.length ?? null,
        committed_cpus: sumOf(running, 'cpus'),
        committed_memory_bytes: sumOf(running, 'memory_bytes'),
      },
      engine: {
        version: found?.version ?? null,
        os: found?.os ?? null,
        arch: found?.arch ?? null,
      },
      last_seen_at: row.last_seen_at,
      created_at: row.created_at,
      updated_at: row.updated_at,
    }
  }
  /** Notes whether the engine answered, and tells when that has changed. */
  function note(id: string, answers: boolean): NodeRow {
    return db.tx(() => {
      const row = get(id)
      const state = answers ? 'ready' : 'unreachable'
      const at = clock.iso()
      const next = { ...row, state, checked_at: at, last_seen_at: answers ? at : row.last_seen_at } as const
      repository.update(next)
      if (row.state !== state)
        events.append({ type: `node.${state}`, payload: { node_id: id, name: row.name } })
      return next
    })
  }
  const look = async (row: NodeRow): Promise<[NodeRow, Facts]> => {
    const facts = await readFacts()
    return [note(row.id, facts.engine !== undefined), facts]
  }

  return {
    /** Asks every node whether it is there; the clock does it each minute. */
    watch: async () => void (await look(own())),
    /** Whether every node answered when it was last asked. */
    check(): { ok: boolean; message?: string } {
      const { rows, total } = repository.list(['unreachable'], MOST_NAMED, 0)
      if (total === 0) return { ok: true }
      const names = rows.map(({ name }) => name).join(', ')
      return {
        ok: false,
        message: `These servers do not answer: ${names}${total > MOST_NAMED ? ' and others' : ''}.`,
      }
    },
    exists: (id: string): boolean => repository.find(id) !== undefined,
    async list(query: Paging & { state?: Wanted; sort?: Sort | undefined }) {
      own()
      const { rows, total } = repository.list(query.state, ...limits(query))
      const facts = await readFacts()
      return paged({ rows: rows.map((row) => view(row, facts)), total }, query)
    },
    async get(id: string): Promise<Node> {
      const [row, facts] = await look(get(id))
      return view(row, facts)
    },
    async change(actor: Actor, id: string, change: NodeChange): Promise<Node> {
      get(id)
      if (change.role === 'worker')
        throw conflict(`${ONLY_ONE} It decides what runs where, and stays a manager.`)
      if (change.availability === 'drain') throw conflict(`${ONLY_ONE} Its work cannot be moved elsewhere.`)
      const { labels } = change
      if (labels)
        db.tx(() => {
          const row = get(id)
          const next = { ...row, labels: JSON.stringify(labels), updated_at: clock.iso() }
          repository.update(next)
          audit.record(actor, {
            ...{ action: 'node.update', resource_type: 'node', resource_id: id, project_id: null },
            before: { labels: JSON.parse(row.labels) as unknown },
            after: { labels },
          })
          const actor_id = actor.user_id || null
          events.append({ type: 'node.updated', actor_id, payload: { node_id: id, name: row.name, labels } })
        })
      return this.get(id)
    },
    drain(id: string): never {
      const { name } = get(id)
      throw conflict(`${ONLY_ONE} The work of ${name} cannot be moved elsewhere.`)
    },
    remove(id: string): never {
      const { name } = get(id)
      throw conflict(`${name} is the server of Portreeve itself and cannot be removed.`)
    },
    async health(id: string): Promise<NodeHealth> {
      const [row, { reading, engine: found }] = await look(get(id))
      const checks = checkNode(reading, found?.version)
      const is_well = Object.values(checks).every(({ ok }) => ok !== false)
      const answering = is_well ? 'ok' : 'degraded'
      return {
        status: found ? answering : 'unreachable',
        checks,
        checked_at: row.checked_at,
        last_seen_at: row.last_seen_at,
      }
    },
    /** Containers on the node whose project the caller may see, oldest first. */
    async instances(actor: Actor, id: string, query: Paging) {
      get(id)
      const visible = visibleProjects(actor)
      const found = (await askingEngine(() => engine.instances({})))
        .filter(({ project_id }) => !visible || visible.includes(project_id))
        .sort((a, b) => ((a.started_at ?? '') < (b.started_at ?? '') ? -1 : 1))
      const all = found.map(
        ({ id: container, owner, limits: given, started_at, ...rest }): Omit<NodeInstance, 'owner_name'> => ({
          id: container.slice(0, SHORT_ID),
          project_id: rest.project_id,
          owner_kind: owner.kind,
          owner_id: owner.id,
          process: rest.process,
          index: rest.index,
          state: rest.state,
          restart_count: rest.restart_count,
          cpus: given?.cpus ?? null,
          memory_bytes: given?.memory_bytes ?? null,
          started_at: started_at ? new Date(started_at).toISOString() : null,
        }),
      )
      const { data, ...page } = pageOf(all, query)
      const named = data.map((one) => ({
        ...one,
        owner_name: modules.named(actor, one.owner_id)?.name ?? null,
      }))
      return { ...page, data: named }
    },
  }
}
export type Nodes = ReturnType<typeof createNodes>
