import { setImmediate as pause, setTimeout as wait } from 'node:timers/promises'
import type { Engine, Instance } from '#server/platform/engine/engine'
import type { Owner, OwnerKind } from '#server/platform/engine/workload'
import { createFollower, type Follower, type FollowerParts } from './follower.ts'
import type { Mark } from './store.ts'

/** Whose output is kept. */
const KINDS: readonly OwnerKind[] = ['app', 'database']
/** An instance whose start nobody told of is found after this. */
const LOOK_MS = 30_000
const PAUSE_MS = 2_000

export interface CollectorParts extends FollowerParts {
  engine: Pick<Engine, 'logs' | 'instances' | 'events'>
}

/** Follows every instance of apps and databases, from its start until it is removed. */
export function createCollector(parts: CollectorParts) {
  const { engine, log, store } = parts
  const followed = new Map<string, Follower>()
  const stop = new AbortController()
  let is_started = false

  const begin = (instance: Instance, known: Map<string, Mark>, stays: boolean): Promise<void> => {
    const follower = createFollower(parts, instance, known.get(instance.id))
    followed.set(instance.id, follower)
    const caught_up = follower.catchUp().catch((error: unknown) => {
      log.debug('The output of an instance could not be read', { instance: instance.id, error })
    })
    const rest = stays ? caught_up.then(() => follower.run()) : caught_up
    rest
      .catch((error: unknown) => log.debug('Following a log ended', { instance: instance.id, error }))
      .finally(() => followed.delete(instance.id))
    return caught_up
  }
  const look = async (owner: Owner | undefined, stays: boolean): Promise<void> => {
    const found = await engine.instances(owner ? { owner } : {})
    const isFresh = ({ id, owner: of }: Instance) => KINDS.includes(of.kind) && !followed.has(id)
    const fresh = found.filter(isFresh)
    const known = new Map<string, Map<string, Mark>>()
    for (const { id } of fresh.map((instance) => instance.owner))
      if (!known.has(id)) known.set(id, await store.readUpTo(id))
    // Another look may have begun with some of them meanwhile.
    const caught_up = fresh
      .filter(isFresh)
      .map((instance) => begin(instance, known.get(instance.owner.id)!, stays))
    await Promise.all(caught_up)
  }
  const watch = async (signal: AbortSignal): Promise<void> => {
    await look(undefined, true)
    for await (const { kind, owner } of engine.events(signal))
      if (kind === 'start' && owner && KINDS.includes(owner.kind))
        look(owner, true).catch((error: unknown) => log.debug('Instances cannot be listed', { error }))
  }
  async function watchAlways(): Promise<void> {
    while (!stop.signal.aborted) {
      // Begun anew from time to time: an event may have been missed, and secrets may have changed.
      const round = AbortSignal.any([stop.signal, AbortSignal.timeout(LOOK_MS)])
      await watch(round).catch((error: unknown) => {
        if (!round.aborted) log.debug('The engine does not tell what starts', { error })
      })
      for (const follower of [...followed.values()]) {
        await follower
          .refresh()
          .catch((error: unknown) => log.warn('The secrets of a log cannot be asked for', { error }))
        await pause()
      }
      if (!round.aborted) await wait(PAUSE_MS)
    }
  }

  return {
    start(): void {
      if (is_started) return
      is_started = true
      void watchAlways()
    },
    /**
     * Reads what instances of an owner have printed by now, those aside that are followed anyway.
     * @param stays whether they are followed from now on.
     */
    attend: (owner: Owner, stays = is_started): Promise<void> => look(owner, stays),
    stop(): void {
      stop.abort()
      for (const follower of followed.values()) follower.end()
    },
  }
}
export type Collector = ReturnType<typeof createCollector>
