import { setTimeout as pause } from 'node:timers/promises'
import type { EngineEvent } from '#server/platform/engine/engine'
import type { EngineMember } from './engine-member.ts'

const AGAIN_MS = 1_000
/** As many wait at most; then those who tell of more wait themselves. */
const MOST_WAITING = 1_000
/**
 * So much may happen at once on another server, and so much in each second after that: each event is a look at what
 * runs. One that tells of more is read more slowly, and what there is on it is seen by whoever lists.
 */
const AT_ONCE = 200
const PER_SECOND = 20

interface Sources {
  local(signal: AbortSignal): AsyncIterable<EngineEvent>
  members(): readonly EngineMember[]
  /** Calls back after each change of the members; the answer ends that. */
  onChange(changed: () => void): () => void
  /** Whether what a member tells of can have happened there. */
  believes(member: EngineMember, event: EngineEvent): boolean
}

/** Waits where more was taken than there is time for. */
function createPace(now: () => number = () => performance.now()) {
  let left = AT_ONCE
  let at = now()
  return async function take(signal: AbortSignal): Promise<void> {
    left = Math.min(AT_ONCE, left + ((now() - at) / 1000) * PER_SECOND)
    at = now()
    left -= 1
    if (left < 0) await pause((-left / PER_SECOND) * 1000, undefined, { signal, ref: false })
  }
}

/**
 * Events of all servers as one stream. It ends with that of this server; a member that goes away is listened to again as
 * soon as it is back.
 */
export async function* mergeEvents(sources: Sources, signal: AbortSignal): AsyncGenerator<EngineEvent> {
  const queue: EngineEvent[] = []
  const life = new AbortController()
  const ending = AbortSignal.any([signal, life.signal])
  const listened = new Map<string, { member: EngineMember; end: AbortController }>()
  let end: { error?: unknown } | undefined
  let wake = () => {}
  let taken = Promise.withResolvers<void>()
  async function push(event: EngineEvent): Promise<void> {
    queue.push(event)
    wake()
    while (queue.length >= MOST_WAITING && !ending.aborted) await taken.promise
  }
  function take(): EngineEvent | undefined {
    taken.resolve()
    taken = Promise.withResolvers()
    return queue.shift()
  }

  async function listen(member: EngineMember, stop: AbortSignal): Promise<void> {
    const pace = createPace()
    while (!stop.aborted) {
      try {
        for await (const event of member.engine.events(stop)) {
          await pace(stop)
          if (sources.believes(member, event)) await push(event)
        }
      } catch {
        // Whatever it was, what there is on it is looked at again by whoever lists.
      }
      await pause(AGAIN_MS, undefined, { signal: stop, ref: false }).catch(() => {})
    }
  }
  function follow(): void {
    const members = sources.members()
    for (const [id, { member, end: over }] of listened)
      if (!members.includes(member)) {
        over.abort()
        listened.delete(id)
      }
    for (const member of members) {
      if (listened.has(member.id)) continue
      const over = new AbortController()
      listened.set(member.id, { member, end: over })
      void listen(member, AbortSignal.any([ending, over.signal]))
    }
  }
  async function listenHere(): Promise<void> {
    try {
      for await (const event of sources.local(ending)) await push(event)
      end = {}
    } catch (error) {
      end = { error }
    }
    wake()
  }

  const stopFollowing = sources.onChange(follow)
  follow()
  void listenHere()
  try {
    for (;;) {
      const event = take()
      if (event) yield event
      else if (end) break
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
    if ('error' in end) throw end.error
  } finally {
    stopFollowing()
    life.abort()
    taken.resolve()
  }
}
