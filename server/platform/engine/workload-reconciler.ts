import type { Log } from '#server/kernel/log'
import { createPace } from '#server/kernel/pace'
import { type Engine, EngineError, type EngineEvent, type Instance, type Labels } from './engine.ts'
import type { OwnerKind, Workload } from './workload.ts'

const PASS_MS = 30_000
const RETRY_MS = 1000
/** A program may let one child after another be killed for memory, dozens a second: how often that is told. */
const OOM_TOLD_MS = 60_000

/** Somebody whose workloads should run now. */
export interface DesiredOwner {
  id: string
  project_id: string
  release_id: string
}
/** How many instances a process of a release has. */
export interface DesiredProcess {
  process: string
  replicas: number
  /** The release that its containers are named by, where that is not the owner's own. */
  release_id?: string
}

/**
 * What the reconciler knows about one kind of owner: apps, databases and whatever else runs as a
 * workload. Containers of kinds that nobody registered are left alone.
 */
export interface WorkloadOwners<Owner extends DesiredOwner = DesiredOwner> {
  kind: OwnerKind
  /** Owners whose workloads should run. */
  desired(): Owner[]
  /** Processes of the owner's release; undefined for an owner that is left alone. */
  processes(owner: Owner): DesiredProcess[] | undefined
  /** The whole workload of one process; opened only when something is missing, since it holds secrets. */
  workload(owner: Owner, process: string): Workload
  /** Networks of the owner's workloads with their labels; made before an instance is. */
  networks(owner: Owner): Readonly<Record<string, Labels>>
  /** Whether a job works on the owner, which then is left alone. */
  busy(owner_id: string): boolean
  /** Releases that a job works on: their containers are no orphans. */
  releasesAtWork(): ReadonlySet<string>
  /** Owner of a release that the rows know, and how long its containers may take to end. */
  release(release_id: string): { owner_id: string; stop_grace_s: number } | undefined
  /** Hears of all instances of this kind at the beginning of a pass. */
  seen?(instances: readonly Instance[]): void
  /** Asked about running instances in the network of another project; true when it sees to them by itself. */
  relocate?(owner: Owner): boolean
  /** Asked to end the instances that are too many, once nobody uses them. Without it they end at once. */
  reduce?(owner: Owner): void
  /** Instances are missing and are about to be made. */
  restoring?(owner: Owner, counts: { found: number; wanted: number }): void
  /** What there is of the owner after it was looked at. */
  observed?(owner: Owner, instances: readonly Instance[]): void | Promise<void>
  /** Something of the owner could not be made. */
  failed?(owner: Owner, error: unknown): void | Promise<void>
  /** An instance ended while no job worked on its owner. */
  exited?(owner_id: string, event: EngineEvent): void
  /** The end of a pass, after all owners. */
  finished?(): void | Promise<void>
}

/** Events after which other instances are there than before. */
const CHANGES: ReadonlySet<EngineEvent['kind']> = new Set(['start', 'die', 'destroy'])

/** Tells a kill for memory from one of an instance of which the same was told lately. */
function createNews() {
  const told = new Map<string, number>()
  return function isNews({ kind, instance_id }: EngineEvent): boolean {
    if (kind !== 'oom') return true
    const now = performance.now()
    if (now - (told.get(instance_id) ?? Number.NEGATIVE_INFINITY) < OOM_TOLD_MS) return false
    for (const [id, at] of told) if (now - at >= OOM_TOLD_MS) told.delete(id)
    told.set(instance_id, now)
    return true
  }
}

/** An engine that was down is no fault of theirs, and of what is gone its owner hears, who sees to it. */
const TRIED_AT_ONCE: readonly EngineError['code'][] = ['unavailable', 'image_not_found', 'volume_missing']

/**
 * Remembers whose workload could not be made: it is not tried again for each event of somebody
 * else, which would keep all others waiting behind it.
 */
function createPatience() {
  const failed = new Map<string, number>()
  return {
    mustWait: (owner_id: string): boolean =>
      performance.now() - (failed.get(owner_id) ?? Number.NEGATIVE_INFINITY) < PASS_MS - RETRY_MS,
    note(owner_id: string, error: unknown): void {
      if (error instanceof EngineError && TRIED_AT_ONCE.includes(error.code)) return
      const now = performance.now()
      for (const [id, at] of failed) if (now - at >= PASS_MS) failed.delete(id)
      failed.set(owner_id, now)
    },
    forget: (owner_id: string) => failed.delete(owner_id),
  }
}

/**
 * Compares what should run with what runs, on every event of the engine and every 30 s, and
 * restores what is missing: instances that vanished or are in the network of another project;
 * containers that nobody owns go.
 */
export function createWorkloadReconciler({
  engine,
  log,
  kinds,
}: {
  engine: Engine
  log: Log
  /** Asked at every pass, so that a domain may register its kind after this was made. */
  kinds(): readonly WorkloadOwners[]
}) {
  const stop = new AbortController()
  /** Undefined until the engine was asked for the first time. */
  let engine_up: boolean | undefined
  let passing: Promise<void> | undefined
  let again = false
  /** Owners of which the engine told something since the pass under way asked it: what it knows of them is old. */
  const changed = new Set<string>()
  const patience = createPatience()
  /** Whose workload a pass makes just now. */
  let at_work: { owner_id: string; done: Promise<unknown> } | undefined
  const kindOf = (kind: string | undefined) => kinds().find((known) => known.kind === kind)

  const pass = async () => {
    changed.clear()
    const instances = await engine.instances({})
    engine_up = true
    for (const kind of kinds())
      await passOf(
        kind,
        instances.filter(({ owner }) => owner.kind === kind.kind),
      )
  }

  const passOf = async (kind: WorkloadOwners, instances: readonly Instance[]) => {
    kind.seen?.(instances)
    const expected = new Set<string>()
    const of_owner = Map.groupBy(instances, ({ owner }) => owner.id)
    const pace = createPace('reconciler')
    for (const owner of kind.desired()) {
      const rest = pace.rest()
      if (rest) await rest
      if (stop.signal.aborted) return
      const processes = kind.processes(owner)
      expected.add(owner.release_id)
      for (const { release_id, process } of processes ?? [])
        if (release_id !== undefined) expected.add(placeOf({ release_id, process }))
      if (kind.busy(owner.id)) patience.forget(owner.id)
      if (!processes || kind.busy(owner.id) || patience.mustWait(owner.id)) continue
      if (changed.has(owner.id)) {
        again = true
        continue
      }
      try {
        const own = of_owner.get(owner.id) ?? []
        const done = restore({ engine, signal: stop.signal }, kind, { owner, processes }, own)
        at_work = { owner_id: owner.id, done }
        await done.finally(() => {
          at_work = undefined
        })
      } catch (error) {
        patience.note(owner.id, error)
        // A job that began meanwhile, such as a restore of what is missing, ends with the owner as
        // it makes it.
        if (kind.busy(owner.id)) continue
        log.warn('A workload could not be restored', { [kind.kind]: owner.id, error })
        await kind.failed?.(owner, error)
      }
    }
    await kind.finished?.()
    await removeOrphans(kind, instances, expected)
  }

  const removeOrphans = async (
    kind: WorkloadOwners,
    instances: readonly Instance[],
    desired: ReadonlySet<string>,
  ) => {
    const at_work = kind.releasesAtWork()
    // What a job has brought to an end since the beginning of the pass is no orphan either.
    const now = new Set(kind.desired().map(({ release_id }) => release_id))
    for (const [release_id, processes] of byRelease(instances)) {
      if (!release_id || desired.has(release_id) || now.has(release_id) || at_work.has(release_id)) continue
      const known = kind.release(release_id)
      if (known && kind.busy(known.owner_id)) continue
      const orphans = processes.filter((process) => !desired.has(placeOf({ release_id, process })))
      if (orphans.length === 0) continue
      log.info('Removing containers that nobody owns', { release: release_id })
      const grace_s = known?.stop_grace_s ?? 0
      if (orphans.length === processes.length) await engine.removeRelease(release_id, grace_s)
      else for (const process of orphans) await engine.removeRelease(release_id, grace_s, process)
    }
  }

  /** One pass at a time; asking during a pass makes another follow. */
  const reconcile = (): Promise<void> => {
    if (passing) {
      again = true
      return passing
    }
    passing = pass()
      .catch((error: unknown) => {
        if (engine_up && !stop.signal.aborted) log.warn('The engine cannot be asked', { error })
        engine_up = false
      })
      .then(() => {
        passing = undefined
        if (!again || stop.signal.aborted) return undefined
        again = false
        return reconcile()
      })
    return passing
  }

  const isNews = createNews()
  const hear = (event: EngineEvent) => {
    engine_up = true
    // A command beside the workload ends by itself, and nothing has to be restored after it.
    if (event.one_off) return
    const kind = kindOf(event.owner?.kind)
    const owner_id = event.owner?.id
    if (owner_id !== undefined && CHANGES.has(event.kind)) changed.add(owner_id)
    // While a job works on the owner, instances end because it ends them; a pass would leave it
    // alone, and would ask for every instance of the server just when the job starts one.
    if (owner_id !== undefined && kind?.busy(owner_id)) return
    if ((event.kind === 'die' || event.kind === 'oom') && owner_id && event.release_id && isNews(event))
      kind?.exited?.(owner_id, event)
    if (CHANGES.has(event.kind)) void reconcile()
  }

  const probeEngine = async () => {
    engine_up = await engine.version().then(
      () => true,
      () => false,
    )
  }
  const watch = async () => {
    while (!stop.signal.aborted) {
      try {
        await reconcile()
        for await (const event of engine.events(stop.signal)) hear(event)
      } catch (error) {
        if (!stop.signal.aborted) log.debug('Events of the engine ended', { error })
      }
      await probeEngine()
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
    }
  }

  let timer: NodeJS.Timeout | undefined
  return {
    reconcile,
    /** Resolves once no pass that began before makes anything for an owner: a job that has begun is let alone. */
    async left(owner_id: string): Promise<void> {
      if (at_work?.owner_id === owner_id) await at_work.done.catch(() => undefined)
    },
    /** Whether the engine did not answer when it was asked last. */
    engineIsDown: () => engine_up === false,
    async start() {
      // An engine that takes connections and answers none must not keep the API waiting.
      void probeEngine().then(watch)
      timer = setInterval(() => void reconcile(), PASS_MS)
      timer.unref()
    },
    async stop() {
      clearInterval(timer)
      stop.abort()
      await passing?.catch(() => undefined)
    },
  }
}
export type WorkloadReconciler = ReturnType<typeof createWorkloadReconciler>

/** Makes what an owner lacks, and tells it what there is. `own` are the owner's instances. */
async function restore(
  { engine, signal }: { engine: Engine; signal: AbortSignal },
  kind: WorkloadOwners,
  { owner, processes }: { owner: DesiredOwner; processes: readonly DesiredProcess[] },
  own: readonly Instance[],
): Promise<void> {
  const places = new Set(
    processes.map(({ process, release_id = owner.release_id }) => placeOf({ release_id, process })),
  )
  let instances = own.filter(
    (instance) => instance.release_id === owner.release_id || places.has(placeOf(instance)),
  )
  // An owner that was moved while nothing could be started in its new project: its old network is
  // not its own any more. Those that run do so until others are ready; what cannot start beside
  // them is made anew in their place.
  const misplaced = instances.some(({ project_id }) => project_id !== owner.project_id)
  if (misplaced && instances.some(({ state }) => state === 'running') && kind.relocate?.(owner)) return
  const is_too_many = processes.some(
    ({ process, replicas }) => ofProcess(instances, process).length > replicas,
  )
  if (!misplaced && is_too_many && kind.reduce) return kind.reduce(owner)
  const lacking = misplaced
    ? processes
    : processes.filter(({ process, replicas }) => isLacking(ofProcess(instances, process), replicas))
  if (lacking.length > 0) {
    // Others were served since it was read: what was stopped meanwhile is not started again.
    if (!kind.desired().some(({ id, release_id }) => id === owner.id && release_id === owner.release_id))
      return
    const desired = processes.reduce((sum, { replicas }) => sum + replicas, 0)
    kind.restoring?.(owner, { found: instances.length, wanted: desired })
    for (const [name, labels] of Object.entries(kind.networks(owner)))
      await engine.ensureNetwork(name, labels)
    for (const { process } of lacking) {
      const made = await engine.ensureRelease(kind.workload(owner, process), signal)
      instances = [...instances.filter((instance) => instance.process !== process), ...made]
    }
    const makers = lacking.map(({ release_id }) => release_id ?? owner.release_id)
    for (const release_id of new Set(makers)) await engine.superviseRelease(release_id, true)
  }
  await kind.observed?.(owner, instances)
}

/** Names the containers of one process of a release. */
const placeOf = ({ release_id, process }: { release_id: string; process: string }): string =>
  `${release_id} ${process}`

/** Processes of each release that have a container. */
function byRelease(instances: readonly Instance[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { release_id, process } of instances) {
    const known = found.get(release_id) ?? []
    if (!known.includes(process)) known.push(process)
    found.set(release_id, known)
  }
  return found
}

const ofProcess = (instances: readonly Instance[], process: string) =>
  instances.filter((instance) => instance.process === process)

const ENDED: readonly Instance['state'][] = ['exited', 'created', 'dead']
const isLacking = (instances: readonly Instance[], replicas: number): boolean =>
  instances.length !== replicas ||
  instances.some(({ state, address }) => ENDED.includes(state) || (state === 'running' && !address))
