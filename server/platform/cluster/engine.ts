import type { Engine, Instance, InstanceFilter } from '#server/platform/engine/engine'
import { type ContainerSpec, LOCAL } from '#server/platform/engine/workload'
import type { NodeOf } from './cluster.ts'
import {
  awayFrom,
  createKnowledge,
  type EngineMember,
  isDown,
  type Knowledge,
  noMember,
} from './engine-member.ts'
import { mergeEvents } from './events.ts'
import { isEventSaid, statsSaid } from './said.ts'

/** What a cluster adds to what engines do by themselves. */
export interface Placing {
  members(): readonly EngineMember[]
  onChange(changed: () => void): () => void
  /** Brings to a member what a container there needs; answers how its engine is asked for it. */
  prepare<T extends ContainerSpec>(member: EngineMember, spec: T, signal: AbortSignal): Promise<T>
  /** How this server's own engine is asked. */
  here<T extends ContainerSpec>(spec: T): T
  nodeOf: NodeOf
  /** Removes a project's network over all servers. */
  removeShared(network: string): Promise<void>
  close(): Promise<void>
}

/**
 * The engines of all servers as one. What is built, pulled and kept is on this server's; a workload
 * runs where its placement says. Without members every call is one of the local engine.
 */
export function createClusterEngine(local: Engine, placing: Placing, now?: () => number): Engine {
  let known: Knowledge[] = []

  /**
   * Members run apps, each what was placed on it; what is left from before may be on one that has
   * another id since. Whoever took one over can put any label on a container there, and must not
   * get the requests and commands of others by that.
   */
  const believes = ({ id }: EngineMember) =>
    function isPlaced({ owner, release_id }: Pick<Instance, 'owner' | 'release_id'>): boolean {
      if (owner.kind !== 'app') return false
      const node = placing.nodeOf(release_id, owner.id)
      return (
        node === undefined ||
        node === id ||
        (node !== null && !placing.members().some((one) => one.id === node))
      )
    }

  /** Members with what is known of them. */
  function all(): readonly Knowledge[] {
    const members = placing.members()
    if (members.length !== known.length || members.some((member, at) => known[at]?.member !== member))
      known = members.map(
        (member) =>
          known.find((one) => one.member === member) ?? createKnowledge(member, believes(member), now),
      )
    return known
  }
  const tellAll = (work: (engine: Engine) => Promise<unknown>, concerned?: InstanceFilter) =>
    Promise.all(all().map((one) => one.tell(() => work(one.member.engine), concerned)))

  function memberOf(node: string): Knowledge {
    const one = all().find(({ member }) => member.id === node)
    if (!one) throw noMember()
    return one
  }
  async function memberWith(instance_id: string): Promise<Knowledge | undefined> {
    const members = all()
    const one = members.find(({ knows }) => knows(instance_id))
    if (one || members.length === 0) return one
    // A process that was just started knows nothing yet.
    await Promise.all(members.map((member) => member.instances({})))
    return members.find(({ knows }) => knows(instance_id))
  }
  /** Does something where an instance is. */
  async function beside<T>(instance_id: string, work: (engine: Engine) => Promise<T>): Promise<T> {
    const one = await memberWith(instance_id)
    return one ? there(() => work(one.member.engine)) : work(local)
  }
  /** What is measured of an instance; of a server that does not answer nothing is known. */
  async function measure<T>(
    instance_id: string,
    work: (engine: Engine) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const one = await memberWith(instance_id)
    if (!one) return work(local)
    return one
      .ask(() => work(one.member.engine))
      .catch((error: unknown) => {
        if (!isDown(error)) throw error
        return undefined
      })
  }
  const there = <T>(work: () => Promise<T>): Promise<T> =>
    work().catch((error: unknown) => Promise.reject(awayFrom(error)))
  const placeOf = ({ placement }: ContainerSpec): string => placement?.node ?? LOCAL

  const releases: Pick<
    Engine,
    'ensureRelease' | 'superviseRelease' | 'pauseRelease' | 'removeRelease' | 'instances' | 'runningInstances'
  > = {
    async ensureRelease(workload, signal) {
      if (placeOf(workload) === LOCAL) return local.ensureRelease(placing.here(workload), signal)
      const one = memberOf(placeOf(workload))
      const made = await there(async () => {
        const spec = await placing.prepare(one.member, workload, signal)
        return one.member.engine.ensureRelease(spec, signal)
      })
      const placed = made.map((instance): Instance => ({ ...instance, node: one.member.id }))
      one.note(placed)
      return placed
    },
    async superviseRelease(release_id, supervised) {
      await Promise.all([
        local.superviseRelease(release_id, supervised),
        tellAll((engine) => engine.superviseRelease(release_id, supervised), { release_id }),
      ])
    },
    async pauseRelease(release_id, paused) {
      await Promise.all([
        local.pauseRelease(release_id, paused),
        tellAll((engine) => engine.pauseRelease(release_id, paused), { release_id }),
      ])
    },
    async removeRelease(release_id, grace_s, process) {
      await Promise.all([
        local.removeRelease(release_id, grace_s, process),
        tellAll((engine) => engine.removeRelease(release_id, grace_s, process), { release_id }),
      ])
      for (const one of all()) one.forget({ release_id, ...(process ? { process } : {}) })
    },
    async instances(filter) {
      const found = await Promise.all([local.instances(filter), ...all().map((one) => one.instances(filter))])
      return found.flat()
    },
    async runningInstances() {
      const found = await Promise.all([
        local.runningInstances(),
        ...all().map((one) => one.runningInstances()),
      ])
      return found.flat()
    },
  }

  const commands: Pick<
    Engine,
    | 'runOnce'
    | 'removeLeftRuns'
    | 'exec'
    | 'openTerminal'
    | 'hangUpTerminal'
    | 'logs'
    | 'stats'
    | 'layerBytes'
  > = {
    async runOnce(spec, signal) {
      if (placeOf(spec) === LOCAL) return local.runOnce(placing.here(spec), signal)
      const { member } = memberOf(placeOf(spec))
      return there(async () => member.engine.runOnce(await placing.prepare(member, spec, signal), signal))
    },
    async removeLeftRuns() {
      await Promise.all([local.removeLeftRuns(), tellAll((engine) => engine.removeLeftRuns())])
    },
    exec: (id, spec, signal) => beside(id, (engine) => engine.exec(id, spec, signal)),
    openTerminal: (id, spec, signal) => beside(id, (engine) => engine.openTerminal(id, spec, signal)),
    hangUpTerminal: (id, session) => beside(id, (engine) => engine.hangUpTerminal(id, session)),
    async *logs(id, options, signal) {
      const one = await memberWith(id)
      try {
        yield* (one?.member.engine ?? local).logs(id, options, signal)
      } catch (error) {
        throw one ? awayFrom(error) : error
      }
    },
    stats: (id) => measure(id, async (engine) => statsSaid(await engine.stats(id))),
    layerBytes: (id, signal) => measure(id, (engine) => engine.layerBytes(id, signal)),
  }

  return {
    ...local,
    ...releases,
    ...commands,
    events: (signal) =>
      mergeEvents(
        {
          ...placing,
          local: (ending) => local.events(ending),
          believes(member, event) {
            const { owner, release_id } = event
            return !!owner && !!release_id && isEventSaid(event) && believes(member)({ owner, release_id })
          },
        },
        signal,
      ),
    async removeNetwork(name) {
      await tellAll((engine) => engine.removeNetwork(name))
      await placing.removeShared(name)
      await local.removeNetwork(name)
    },
    async removeImage(reference) {
      const [removed] = await Promise.all([
        local.removeImage(reference),
        tellAll((engine) => engine.removeImage(reference)),
      ])
      return removed
    },
    async removeLabelled(labels) {
      await tellAll((engine) => engine.removeLabelled(labels))
      await local.removeLabelled(labels)
      const { release, project, app } = labels
      const filter = {
        ...(release ? { release_id: release } : {}),
        ...(project ? { project_id: project } : {}),
        ...(app ? { owner: { kind: 'app', id: app } as const } : {}),
      }
      // What carries other labels as well is no instance.
      if (Object.keys(filter).length === Object.keys(labels).length && Object.keys(filter).length > 0)
        for (const one of all()) one.forget(filter)
    },
    async close() {
      await Promise.all([local.close(), placing.close()])
    },
  }
}
