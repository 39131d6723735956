import { hostname } from 'node:os'
import { type Actor, visibleProjects } from '#server/kernel/access'
import { answeredWithin, shared } from '#server/kernel/deadline'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { Sort, Wanted } from '#server/kernel/page'
import { limits, paged, pageOf, type Paging } from '#server/kernel/schemas'
import { askingEngine } from '#server/platform/engine/asking'
import { readHost } from '#server/platform/host/reading'
import { createNodeContext, type NodeOptions } from './context.ts'
import { checkMember, checkNode } from './health.ts'
import { createJoin } from './join.ts'
import { createMembers, isLeftOut } from './members.ts'
import { createMoving } from './moving.ts'
import { createRelogin } from './relogin.ts'
import { createRemoval } from './removal.ts'
import { isAdded, type NodeRow } from './repository.ts'
import type { NewNode, Node, NodeChange, NodeHealth } from './schema.ts'
import { type Facts, instanceView, isOn, nodeView } from './view.ts'

/** An engine that does not answer is told as such, and does not keep the page waiting. */
const ANSWER_MS = 3_000
/** How often members are asked whether they are there. */
const WATCH_MS = 10_000
const MOST_NAMED = 5
const ONLY_ONE = 'This is the only server.'
const STAYS = 'This is the server of Portreeve itself: databases, volumes and builds are on it.'

/** The servers that run instances: that of Portreeve itself, and those that were added. */
export function createNodes(options: NodeOptions) {
  const context = createNodeContext(options)
  const { db, clock, jobs, engine, repository, get } = context
  const moving = createMoving(context)
  const members = createMembers(context, () => moving.sweep())
  const join = createJoin(context, members)
  const removal = createRemoval(context, members, moving)
  const relogin = createRelogin(context, members)
  const ownAddress = () => context.addresses()[0] ?? '127.0.0.1'

  /** The row of this server: made when it is first asked for, and it follows a new host name. */
  function own(): NodeRow {
    const known = repository.own()
    if (known && (known.name === hostname() || repository.findByName(hostname()))) return known
    const at = clock.iso()
    const row: NodeRow = known
      ? { ...known, name: hostname(), updated_at: at }
      : {
          ...{ id: newId('node'), name: freeName(hostname()), state: 'ready', labels: '{}' },
          ...{ checked_at: at, last_seen_at: null, created_at: at, updated_at: at },
          ...{ address: null, ssh_port: null, ssh_user: null, ssh_key_id: null, host_key: null },
          ...{ availability: 'active', last_error: null, reading: null, silent_since: null, joined_at: null },
        }
    if (known) repository.update(row)
    else repository.insert(row)
    return row
  }
  const freeName = (name: string): string => (repository.findByName(name) ? `${name}-${newId('node')}` : name)
  /** One question at a time, whoever asks. */
  const readFacts = shared(async (): Promise<Facts> => {
    const none = () => undefined
    const [reading, version, instances] = await Promise.all([
      readHost(context.data_directory),
      answeredWithin(ANSWER_MS, engine.version().catch(none), undefined),
      answeredWithin(ANSWER_MS, engine.instances({}).catch(none), undefined),
    ])
    return { reading, engine: version, instances: version && instances }
  })
  const view = (actor: Actor, row: NodeRow, facts: Facts): Node => nodeView(actor, row, facts, ownAddress())
  /** Notes whether this server's engine answered, and tells when that has changed. */
  function note(id: string, answers: boolean): NodeRow {
    return db.tx(() => {
      const row = get(id)
      const state = answers ? 'ready' : 'unreachable'
      const at = clock.iso()
      const next = { ...row, state, checked_at: at, last_seen_at: answers ? at : row.last_seen_at } as const
      repository.update(next)
      if (row.state !== state) context.emit(next, `node.${state}`)
      return next
    })
  }
  const look = async (row: NodeRow): Promise<[NodeRow, Facts]> => {
    const [facts, seen] = await Promise.all([readFacts(), members.look(row)])
    return isAdded(row) ? [seen.row, facts] : [note(row.id, facts.engine !== undefined), facts]
  }
  /** Asks every member whether it is there, and moves what has to be moved. */
  async function watchMembers(): Promise<void> {
    const rows = repository.added()
    if (rows.length === 0) return moving.sweep()
    await Promise.all(rows.map(members.look))
    moving.sweep()
  }
  const requireAdded = (row: NodeRow, what: string): void => {
    if (!isAdded(row)) throw conflict(`${repository.added().length === 0 ? ONLY_ONE : STAYS} ${what}`)
  }
  function setAvailability(actor: Actor, id: string, availability: NodeRow['availability']): void {
    const row = get(id)
    if (row.availability === availability) return
    const next = { ...row, availability, updated_at: clock.iso() }
    repository.update(next)
    context.record(actor, availability === 'drain' ? 'drain' : 'activate', row, {
      before: { availability: row.availability },
      after: { availability },
    })
    if (availability === 'drain') context.emit(next, 'node.draining', {}, actor)
    else context.emit(next, 'node.updated', { labels: JSON.parse(row.labels) as unknown }, actor)
  }

  let timer: NodeJS.Timeout | undefined
  members.use()
  return {
    jobs: [join.job, removal.job],
    /** Asks members often, where there are any. */
    start(): void {
      const watch = () => {
        if (repository.added().length > 0)
          void watchMembers().catch((error: unknown) =>
            context.log.warn('The servers cannot be watched', { error }),
          )
      }
      // What is known of them may be of another machine, that this one was restored from.
      watch()
      timer = setInterval(watch, WATCH_MS)
      timer.unref()
    },
    stop: () => clearInterval(timer),
    place: moving.place,
    /** Whether a release may start on a server now. */
    canRun: (node_id: string | null) => node_id === null || moving.leaveBecause(node_id) === undefined,
    /** Whether a server answers, as far as it is known: what it runs is let alone while it does not. */
    answers(node_id: string | null): boolean {
      if (node_id === null) return true
      const row = repository.find(node_id)
      return row?.silent_since === null && row.joined_at !== null
    },
    find: (id: string) => {
      const row = repository.find(id)
      const takes_work = row?.availability === 'active' && !['failed', 'removing'].includes(row.state)
      return row && { id, name: row.name, is_own: !isAdded(row), takes_work }
    },
    /** Name of a server; null is that of Portreeve. */
    nameOf: (id: string | null): string => (id === null ? own().name : (repository.find(id)?.name ?? id)),
    /** Names of the servers that are logged in to with an SSH key. */
    namesUsing: (ssh_key_id: string) =>
      repository.added().flatMap((row) => (row.ssh_key_id === ssh_key_id ? [`the server ${row.name}`] : [])),
    /** Asks every node whether it is there; the clock does it each minute. */
    watch: async () => {
      await look(own())
      await watchMembers()
    },
    /** Whether every node answered when it was last asked, and can be given work. */
    check(): { ok: boolean; message?: string } {
      const { rows, total } = repository.list(['unreachable'], MOST_NAMED, 0)
      if (total === 0) {
        const out = repository.added().filter(isLeftOut)
        if (out.length === 0) return { ok: true }
        const names = out.slice(0, MOST_NAMED).map(({ name }) => name)
        return { ok: false, message: `These servers are in the cluster no longer: ${names.join(', ')}.` }
      }
      const names = rows.map(({ name }) => name).join(', ')
      return {
        ok: false,
        message: `These servers do not answer: ${names}${total > MOST_NAMED ? ' and others' : ''}.`,
      }
    },
    exists: (id: string): boolean => repository.find(id) !== undefined,
    async list(actor: Actor, query: Paging & { state?: Wanted; sort?: Sort | undefined }) {
      own()
      const { rows, total } = repository.list(query.state, ...limits(query))
      const facts = await readFacts()
      return paged({ rows: rows.map((row) => view(actor, row, facts)), total }, query)
    },
    async get(actor: Actor, id: string): Promise<Node> {
      const [row, facts] = await look(get(id))
      return view(actor, row, facts)
    },
    async add(actor: Actor, given: NewNode): Promise<Node> {
      own()
      const row = await join.add(actor, given)
      return view(actor, row, await readFacts())
    },
    async change(actor: Actor, id: string, change: NodeChange): Promise<Node> {
      const { role, availability, labels, ssh } = change
      const before = get(id)
      if (role === 'worker') requireAdded(before, 'It decides what runs where, and stays a manager.')
      if (role === 'manager' && isAdded(before))
        throw conflict('Only the server of Portreeve itself decides what runs where; the others are workers.')
      if (availability === 'drain') this.requireDrainable(before)
      if (ssh) requireAdded(before, 'Nobody logs in to it.')
      if (ssh) await relogin(actor, id, ssh)
      db.tx(() => {
        if (availability) setAvailability(actor, id, availability)
        if (!labels) return
        const row = get(id)
        const next = { ...row, labels: JSON.stringify(labels), updated_at: clock.iso() }
        repository.update(next)
        context.record(actor, 'update', row, {
          before: { labels: JSON.parse(row.labels) as unknown },
          after: { labels },
        })
        context.emit(next, 'node.updated', { labels }, actor)
      })
      if (availability === 'drain') moving.sweep()
      return this.get(actor, id)
    },
    requireDrainable(row: NodeRow): void {
      requireAdded(row, `The work of ${row.name} cannot be moved elsewhere.`)
      removal.requireNoPins(row)
    },
    /** Has nothing more go to a server, and what is on it move elsewhere, each app by a deployment. */
    drain(actor: Actor, id: string): Promise<Node> {
      return this.change(actor, id, { availability: 'drain' })
    },
    remove(actor: Actor, id: string, force: boolean) {
      removal.remove(actor, id, force)
      return { data: { id, deleted: true as const } }
    },
    async activate(actor: Actor, id: string): Promise<Node> {
      const row = get(id)
      const job = row.state === 'removing' ? jobs.findBySubject(id) : undefined
      if (job && !jobs.cancel(job.id))
        throw conflict(`${row.name} is past being kept: it leaves the cluster.`)
      return this.change(actor, id, { availability: 'active' })
    },
    async health(id: string): Promise<NodeHealth> {
      const asked = get(id)
      const [facts, seen] = await Promise.all([readFacts(), members.look(asked)])
      const answers = isAdded(asked) ? seen.reading !== undefined : facts.engine !== undefined
      const row = isAdded(asked) ? seen.row : note(id, answers)
      const checks = isAdded(asked)
        ? checkMember(seen.reading, seen.reason)
        : checkNode(facts.reading, facts.engine?.version)
      const is_well = Object.values(checks).every(({ ok }) => ok !== false)
      const answering = is_well ? 'ok' : 'degraded'
      return {
        status: answers ? answering : 'unreachable',
        checks,
        checked_at: row.checked_at,
        last_seen_at: row.last_seen_at,
      }
    },
    /** Containers on the node whose project the caller may see, oldest first. */
    async instances(actor: Actor, id: string, query: Paging) {
      const row = get(id)
      const visible = visibleProjects(actor)
      const found = (await askingEngine(() => engine.instances({})))
        .filter(isOn(row))
        .filter(({ project_id }) => !visible || visible.includes(project_id))
        .sort((a, b) => ((a.started_at ?? '') < (b.started_at ?? '') ? -1 : 1))
      const { data, ...page } = pageOf(found.map(instanceView), query)
      const named = data.map((one) => ({
        ...one,
        owner_name: options.modules.named(actor, one.owner_id)?.name ?? null,
      }))
      return { ...page, data: named }
    },
  }
}
export type Nodes = ReturnType<typeof createNodes>
