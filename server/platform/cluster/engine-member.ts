import { instancesSaid } from './said.ts'
import { type Engine, EngineError, type Instance, type InstanceFilter } from '#server/platform/engine/engine'

/** A server whose engine takes part. */
export interface EngineMember {
  readonly id: string
  readonly engine: Engine
  /** Whether it was logged in to and nothing says that it is gone. */
  isUp(): boolean
}

/** So long does whoever lists or measures wait for one that may not be there. */
const PATIENCE_MS = 3_000
/** The same for one that was never heard of: it is being logged in to. */
const FIRST_PATIENCE_MS = 10_000
/** What a server said last stands for so long: a connection that broke is made again within it. */
const GRACE_MS = 10_000
const SILENT_AGAIN_MS = 5_000

export const isDown = (error: unknown): boolean =>
  error instanceof EngineError && error.code === 'unavailable'
export const noMember = (): EngineError =>
  new EngineError(
    'unavailable',
    'The server that this is placed on is not part of the cluster.',
    'Choose another server for the app.',
    { is_elsewhere: true },
  )

/** Tells whoever waits for something on a member that it is that server which does not answer. */
export function awayFrom(error: unknown): unknown {
  if (!isDown(error)) return error
  return new EngineError(
    'unavailable',
    'The server that this runs on does not answer.',
    'Try again once it does.',
    { cause: error, is_elsewhere: true },
  )
}

const fits = (filter: InstanceFilter, { owner, release_id, project_id }: Instance): boolean =>
  (!filter.owner || (filter.owner.kind === owner.kind && filter.owner.id === owner.id)) &&
  (!filter.release_id || filter.release_id === release_id) &&
  (!filter.project_id || filter.project_id === project_id)

/**
 * What is known of a member, which may stop answering at any time: then it is said what it said
 * last, and nobody waits for it.
 * @param believes whether what it says to run can be there.
 */
export function createKnowledge(
  member: EngineMember,
  believes: (said: Pick<Instance, 'owner' | 'release_id'>) => boolean,
  now: () => number = () => performance.now(),
) {
  const known = new Map<string, Instance>()
  let heard_at = Number.NEGATIVE_INFINITY
  let silent_until = Number.NEGATIVE_INFINITY

  /** Throws `unavailable` for one that does not answer in time. */
  async function ask<T>(work: () => Promise<T>): Promise<T> {
    if (!isAsked()) throw noAnswer()
    let timer: NodeJS.Timeout | undefined
    try {
      const late = new Promise<never>((_, reject) => {
        const patience_ms = Number.isFinite(heard_at) ? PATIENCE_MS : FIRST_PATIENCE_MS
        timer = setTimeout(() => reject(noAnswer()), patience_ms)
      })
      const answer = await Promise.race([work(), late])
      heard_at = now()
      return answer
    } catch (error) {
      if (isDown(error)) silent_until = now() + SILENT_AGAIN_MS
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
  const noAnswer = () => new EngineError('unavailable', 'The server does not answer.')
  const isAsked = () => now() >= silent_until
  const isGone = () => now() - heard_at >= GRACE_MS

  return {
    member,
    ask,
    knows: (instance_id: string): boolean => known.has(instance_id),
    note(instances: readonly Instance[]): void {
      for (const instance of instances) known.set(instance.id, instance)
    },
    /** What was removed there, or is to be as soon as it is back, is shown no more. */
    forget(filter: InstanceFilter & { process?: string }): void {
      for (const [id, instance] of known)
        if (fits(filter, instance) && (!filter.process || filter.process === instance.process))
          known.delete(id)
    },
    /**
     * Does something there; of one that does not answer nobody hears, and of one that refuses only
     * whoever has something there.
     */
    async tell(work: () => Promise<unknown>, concerned?: InstanceFilter): Promise<void> {
      if (!member.isUp() || !isAsked()) return
      const is_concerned =
        concerned === undefined || [...known.values()].some((instance) => fits(concerned, instance))
      await work().catch((error: unknown) => {
        if (!isDown(error) && is_concerned) throw error
      })
    },
    async instances(filter: InstanceFilter): Promise<Instance[]> {
      try {
        const found = instancesSaid(await ask(() => member.engine.instances(filter)))
          .filter(believes)
          .map((instance): Instance => ({ ...instance, node: member.id }))
        for (const [id, instance] of known) if (fits(filter, instance)) known.delete(id)
        for (const instance of found) known.set(instance.id, instance)
        return found
      } catch (error) {
        // A fault of one server, whatever it is, must not hide what there is on others.
        const last = [...known.values()].filter((instance) => fits(filter, instance))
        return isDown(error) && isGone() ? last.map(asGone) : last
      }
    },
    async runningInstances(): Promise<Pick<Instance, 'id' | 'owner'>[]> {
      const running = await ask(() => member.engine.runningInstances()).catch((error: unknown) =>
        isDown(error) && isGone() ? [] : [...known.values()].filter(({ state }) => state === 'running'),
      )
      // Whose it is was said together with the release, by which it is believed.
      return running.flatMap(({ id }) => {
        const instance = known.get(id)
        return instance ? [{ id, owner: instance.owner }] : []
      })
    },
  }
}
export type Knowledge = ReturnType<typeof createKnowledge>

/** An instance on a server that does not answer serves nobody. */
function asGone({ address: _address, ...instance }: Instance): Instance {
  return instance.state === 'running' || instance.state === 'restarting'
    ? { ...instance, state: 'exited' }
    : instance
}
