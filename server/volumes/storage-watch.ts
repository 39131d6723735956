import { setImmediate } from 'node:timers/promises'
import type { Clock } from '#server/kernel/clock'
import type { FailureCode } from '#server/kernel/failures'
import type { Log } from '#server/kernel/log'

/**
 * A volume, a database, or what an instance wrote beside its volumes, with the bytes that it held
 * when it was measured last. The last counts for no quota, and on a full disk like the others.
 */
export interface Stored {
  kind: 'volume' | 'database' | 'layer'
  /** Of a layer, the app or the database whose instance it is. */
  id: string
  /** What the engine calls its data: a restore puts others in their place. */
  data_id: string
  name: string
  project_id: string
  used_bytes: number
  /** Bytes of data from before restores and upgrades: they count, and nothing writes to them. */
  kept_bytes: number
}
/** Why something was stopped. */
export interface StorageStop {
  code: FailureCode
  error: string
}
/** What came of stopping: `idle` when nothing ran, `busy` while a job is about it, so that it stays as it is. */
export type StopOutcome = 'stopped' | 'idle' | 'busy'
export interface StoragePorts {
  /** Projects with a quota `storage_bytes`. */
  limited(): readonly { id: string; storage_bytes: number }[]
  stored(): readonly Stored[]
  /** Has the engine measure what is stored; layers on a full disk alone, where they matter. */
  measure(is_full: boolean): Promise<void>
  /** Whether nothing is left of the disk but what is kept for Portreeve itself. */
  isFull(): Promise<boolean>
  /** Ends what writes to it, and tells why. */
  stop(grown: Stored, reason: StorageStop): Promise<StopOutcome>
}
export interface StorageWatchOptions {
  clock: Clock
  log: Log
  ports: StoragePorts
}

/** How often the volumes are measured, at most. */
const EVERY_MS = 60_000
/** A disk that has just filled up is not left so until the minute is over; one that does it again waits this long. */
const AT_LEAST_MS = 10_000
/** The engine walks all their files: of its time, a hundredth is spent on this. */
const SHARE_OF_TIME = 100
/** While the disk is full, a tenth: each further one that fills it would else go on for minutes. */
const SHARE_WHILE_FULL = 10
/** Growth below this fills no disk: a sixteenth of the reserve that is kept for Portreeve. */
export const LEAST_GROWTH_BYTES = 64 * 1024 ** 2

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB']
function shown(bytes: number): string {
  if (bytes === 1) return '1 byte'
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1)
  const amount = bytes / 1024 ** power
  return `${power === UNITS.length - 1 ? amount.toFixed(1) : Math.ceil(amount)} ${UNITS[power]}`
}

/** Bytes of data that were held when there was room last: growth is counted from there. */
type Marks = Map<string, number>
interface Grown {
  one: Stored
  by_bytes: number
}
const growthOf = (all: readonly Stored[], marks: Marks): Grown[] =>
  all
    .map((one) => ({ one, by_bytes: one.used_bytes - (marks.get(one.data_id) ?? 0) }))
    .sort((a, b) => b.by_bytes - a.by_bytes)
function remember(marks: Marks, all: readonly Stored[]): void {
  for (const { data_id, used_bytes } of all) marks.set(data_id, used_bytes)
}
function forgetGone(marks: Marks, all: readonly Stored[]): void {
  const present = new Set(all.map(({ data_id }) => data_id))
  for (const id of marks.keys()) if (!present.has(id)) marks.delete(id)
}

/**
 * Stops what fills a project's share of the disk, or the disk itself: of all volumes, databases
 * and layers the one that grew most since there was room, if its growth crossed the quota or is
 * large enough to matter. What holds much and does not grow is left alone, and so is what grows by
 * little beside it. Without a quota and with room on the disk nothing is measured.
 */
export function createStorageWatch({ clock, log, ports }: StorageWatchOptions) {
  const within_quota: Marks = new Map()
  const with_room: Marks = new Map()
  /** Projects above their quota for whose crossing something was stopped, or nothing alone was the cause. */
  const crossed = new Set<string>()
  let due_ms = 0
  let began_ms = -AT_LEAST_MS
  let was_full = false
  let under_way: Promise<void> | undefined

  /** Stops the first of these, or the next one where nothing runs; none while a job is about the first. */
  async function stopOne(
    grown: readonly Grown[],
    marks: Marks,
    stopped: Set<string>,
    reason: (grown: Grown) => StorageStop,
  ): Promise<StopOutcome> {
    for (const each of grown) {
      const { one } = each
      const why = reason(each)
      const outcome = stopped.has(one.id) ? 'stopped' : await ports.stop(one, why)
      // What it holds now is dealt with: once it is started again, growth is counted from here.
      if (outcome !== 'busy') marks.set(one.data_id, one.used_bytes)
      if (outcome === 'idle') continue
      if (outcome === 'stopped' && !stopped.has(one.id)) {
        stopped.add(one.id)
        log.warn(why.error, { project_id: one.project_id, kind: one.kind, id: one.id })
      }
      return outcome
    }
    return 'idle'
  }
  async function holdQuota(
    { id, storage_bytes }: { id: string; storage_bytes: number },
    own: readonly Stored[],
    stopped: Set<string>,
  ): Promise<void> {
    const held = own.reduce((sum, { used_bytes, kept_bytes }) => sum + used_bytes + kept_bytes, 0)
    if (held <= storage_bytes) {
      crossed.delete(id)
      return remember(within_quota, own)
    }
    const matters = ({ by_bytes }: Grown) =>
      by_bytes >= LEAST_GROWTH_BYTES || (by_bytes > 0 && !crossed.has(id) && held - by_bytes <= storage_bytes)
    const grown = growthOf(own, within_quota).filter(matters)
    const outcome = await stopOne(grown, within_quota, stopped, ({ one: { kind, name }, by_bytes }) => ({
      code: 'storage_exceeded',
      error: `The volumes and databases of the project hold ${shown(held)}, and ${shown(storage_bytes)} is the most. The ${kind} ${name} grew most, by ${shown(by_bytes)}, so what writes to it was stopped. Delete data, or ask an administrator to raise the quota storage_bytes; then start it.`,
    }))
    if (outcome !== 'busy') crossed.add(id)
  }
  async function holdDisk(all: readonly Stored[], is_full: boolean, stopped: Set<string>): Promise<void> {
    if (!is_full) return remember(with_room, all)
    const grown = growthOf(all, with_room).filter(({ by_bytes }) => by_bytes >= LEAST_GROWTH_BYTES)
    await stopOne(grown, with_room, stopped, ({ one: { kind, name }, by_bytes }) => ({
      code: 'disk_full',
      error: `The disk of the server is full: what is left is kept for Portreeve itself. ${
        kind === 'layer'
          ? `What ${name} wrote into its container grew most, by ${shown(by_bytes)}, so it was stopped, and that is gone with it. What is to be kept belongs on a volume; then start it.`
          : `The ${kind} ${name} grew most, by ${shown(by_bytes)}, so what writes to it was stopped. Free space; then start it.`
      }`,
    }))
  }
  /** What was there before it was measured, as it was known then, counts as held and not as growth. */
  function markKnown(): void {
    const known = ports.stored()
    for (const marks of [within_quota, with_room])
      remember(
        marks,
        known.filter(({ data_id }) => !marks.has(data_id)),
      )
  }
  function forgetAll(): void {
    for (const known of [within_quota, with_room, crossed]) known.clear()
  }

  async function compare(is_full: boolean, limited: ReturnType<StoragePorts['limited']>): Promise<void> {
    began_ms = clock.monotonic_ms()
    markKnown()
    await ports.measure(is_full)
    const took = clock.monotonic_ms() - began_ms
    due_ms = clock.monotonic_ms() + Math.max(EVERY_MS, took * (is_full ? SHARE_WHILE_FULL : SHARE_OF_TIME))
    const all = ports.stored()
    for (const marks of [within_quota, with_room]) forgetGone(marks, all)
    const with_quota = new Set(limited.map(({ id }) => id))
    // A quota that is set later is about what grows from then on.
    remember(
      within_quota,
      all.filter(({ project_id }) => !with_quota.has(project_id)),
    )
    const stopped = new Set<string>()
    const by_project = Map.groupBy(
      all.filter(({ kind }) => kind !== 'layer'),
      ({ project_id }) => project_id,
    )
    for (const project of limited) {
      await setImmediate()
      await holdQuota(project, by_project.get(project.id) ?? [], stopped)
    }
    await holdDisk(all, is_full, stopped)
  }
  async function pass(): Promise<void> {
    try {
      const is_full = await ports.isFull()
      const has_filled = is_full && !was_full && clock.monotonic_ms() >= began_ms + AT_LEAST_MS
      if (!has_filled && clock.monotonic_ms() < due_ms) return
      was_full = is_full
      const limited = ports.limited()
      if (!is_full && limited.length === 0) return forgetAll()
      await compare(is_full, limited)
    } catch (error) {
      log.warn('The sizes of volumes and databases cannot be measured', { error })
    }
  }

  return {
    /** Measures and compares, when it is time and there is a limit, or the disk has just filled up. Never rejects. */
    pass(): Promise<void> {
      under_way ??= pass().finally(() => {
        under_way = undefined
      })
      return under_way
    },
    /** Compares as well when the disk has filled up since it was looked at last, which costs next to nothing. */
    async look(): Promise<void> {
      if (!was_full && (await ports.isFull().catch(() => false))) await this.pass()
    },
  }
}
export type StorageWatch = ReturnType<typeof createStorageWatch>
