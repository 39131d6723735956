import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '#server/kernel/clock'
import type { Log } from '#server/kernel/log'
import type { Engine, Instance, LogLine, LogOptions } from '#server/platform/engine/engine'
import type { Owner } from '#server/platform/engine/workload'
import { createBudget } from '#server/kernel/budget'
import { levelOf } from '#server/kernel/log-level'
import type { RuntimeLine } from './schema.ts'
import type { PrintShares } from './shares.ts'
import type { Mark, RuntimeStore } from './store.ts'

/** What one instance may print for long without anything being left out, in bytes. */
const PACE = { at_once: 8 * 1024 * 1024, per_second: 1024 * 1024 }
const LINE_BYTES = 200
/** A follower that is so far behind what is printed now leaves lines out. */
const BEHIND_MS = 10_000
/** Of what is left out, so many lines of its end are kept: what ends a program is told there. */
const LAST_LINES = 100
const PAUSE_MS = 100
/** What was there when somebody begins to follow is read within this, or later. */
const CATCH_UP_MS = 3_000

export interface FollowerParts {
  engine: Pick<Engine, 'logs'>
  clock: Clock
  log: Log
  store: RuntimeStore
  /** Text of an owner's log without secrets, by what they are now. */
  redactor(instance: Instance): Promise<(text: string) => string>
  deploymentOf(release_id: string): string | null
  /** Project that an owner is in. */
  projectOf(owner: Owner): string
  /** What all instances may print together. */
  shares: PrintShares
}
type Origin = Omit<RuntimeLine, 'seq' | 'at' | 'stream' | 'level' | 'text'>

/** Carries the lines of one instance into the store, each once, at a pace that nobody else feels. */
export function createFollower(parts: FollowerParts, instance: Instance, known: Mark | undefined) {
  const { engine, clock, store, shares } = parts
  const project_id = parts.projectOf(instance.owner)
  const stop = new AbortController()
  const budget = createBudget(clock, PACE)
  const isLeft = () => budget.isLeft() && shares.isLeft(project_id)
  const origin: Origin = {
    instance_id: instance.id,
    process: instance.process,
    index: instance.index,
    release_id: instance.release_id,
    deployment_id: parts.deploymentOf(instance.release_id),
  }
  let redact: ((text: string) => string) | undefined
  const mark: Mark = { ...(known ?? { at: '', count: 0 }) }
  /** Lines at the mark that the present reading shows once more. */
  let shown_again = 0

  const isNew = ({ at }: LogLine): boolean => {
    if (at < mark.at) return false
    if (at === mark.at && shown_again > 0) {
      shown_again -= 1
      return false
    }
    mark.count = at === mark.at ? mark.count + 1 : 1
    mark.at = at
    shown_again = 0
    return true
  }
  const keep = (line: LogLine) => {
    if (!isNew(line)) return
    const { at, stream } = line
    const text = redact!(line.text)
    store.append(instance.owner.id, { at, stream, level: levelOf(text, stream), text, ...origin })
    budget.spend(text.length + LINE_BYTES)
    shares.spend(project_id, text.length + LINE_BYTES)
  }
  const refresh = async (): Promise<void> => {
    redact = await parts.redactor(instance)
  }
  async function* read(options: LogOptions, signal: AbortSignal): AsyncGenerator<LogLine> {
    if (!redact) await refresh()
    shown_again = mark.count
    yield* engine.logs(instance.id, { ...(mark.at ? { since: mark.at } : {}), ...options }, signal)
  }
  /** Tells that lines are missing, behind the last one that is there. */
  const skip = () => {
    const { at } = mark
    const text = 'More is printed than can be kept: lines were left out here.'
    store.append(instance.owner.id, { at, stream: 'system', level: 'warn', text, ...origin })
  }
  /**
   * False when it is too far behind.
   *
   * @param last begins with so many of the newest lines, however long ago they were printed.
   */
  const follow = async (last?: number): Promise<boolean> => {
    let left = last ?? 0
    for await (const line of read({ follow: true, ...(last ? { tail: last } : {}) }, stop.signal)) {
      keep(line)
      left -= 1
      while (left < 0 && !isLeft() && !stop.signal.aborted) {
        if (clock.now() - Date.parse(line.at) > BEHIND_MS) return false
        await wait(PAUSE_MS)
      }
    }
    return true
  }

  return {
    /** What was printed until now. */
    async catchUp(): Promise<void> {
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(CATCH_UP_MS)])
      for await (const line of read({ follow: false }, signal)) {
        keep(line)
        if (!isLeft()) return
      }
    },
    /** Until the instance is removed or `end` is called. */
    async run(): Promise<void> {
      for (let is_done = await follow(); !is_done; is_done = await follow(LAST_LINES)) {
        skip()
        // Also where the clock of its server is behind, and every line seems old.
        while (!isLeft() && !stop.signal.aborted) await wait(PAUSE_MS)
      }
    },
    /** Asks again for the values that must not show up. */
    refresh,
    end: () => stop.abort(),
  }
}
export type Follower = ReturnType<typeof createFollower>
