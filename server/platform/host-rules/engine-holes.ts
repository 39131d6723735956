import { setTimeout as wait } from 'node:timers/promises'
import { isReserveTouched } from '#server/kernel/disk-reserve'
import { type LayerMaker, MOST_HOLES_BYTES, type WatchHoles } from '#server/platform/engine/holes'
import {
  cutLayer,
  isOfImage,
  layerBegan,
  layerHoles,
  type OpenFile,
  openLayerFiles,
  spoilLayer,
} from './engine-layers.ts'
import { type findEngine, followEngine } from './engine-process.ts'
import { endWrites } from './engine-writes.ts'

/**
 * Ends what the engine reads of files that are mostly empty: it reads the layers of a build byte by byte, holes too,
 * in its own process, and goes on when nobody waits for the build any more.
 */
export interface EngineHoles {
  watch: WatchHoles
  /** Looks for what an earlier server has left the engine to read. */
  start(): void
  stop(): void
}

export interface EngineHolesOptions {
  docker_host: string
  log(message: string, error?: unknown): void
  /** Lets the builder forget a layer, where nothing is made of it yet: it may have taken note of what was cut. */
  forget?(layer: string): Promise<unknown>
  find?: typeof findEngine
  /** Files of layers that the engine has open. */
  openFiles?(pid: number): Promise<OpenFile[]>
  /** Whether nothing is left on the disk of a folder but what is kept for Portreeve. */
  isDiskFull?(directory: string): boolean
  /** How often it is looked. */
  look_ms?: number
  /** Holes of one build that the engine may read. */
  most_bytes?: number
}

/** It reads some hundred megabytes in the meantime. */
const LOOK_MS = 500
/** So long nothing is read before the watch ends. */
const CALM_MS = 30_000
/** Worth a walk over all files of the layer at once. */
const LARGE_BYTES = 64 * 1024 ** 2
/** What a layer was found to have counts for so long, for one layer after another. */
const REMEMBERED_MS = 300_000
/** It gives a file that was cut up at once, and the next build may use the layer. */
const TRIES = 100
const AGAIN_MS = 20
/** Else a layer is walked once it is read for so many looks. */
const LOOKS = 3
const GIB = 1024 ** 3

/** A build that is watched, or was some time ago. */
interface Work {
  build: LayerMaker
  ending: AbortController
  ended_at?: number
}
/** A layer that the engine has read since the watch began. */
interface Layer {
  root: string
  name: string
  since: number
  seen_at: number
  looks: number
  holes_bytes?: number
  /** The build that made it, where one of ours is known to. */
  work?: Work
  state: 'read' | 'told' | 'cut'
}

/** Where the engine is in files of a layer that it copies: at the same place in both files. */
function sourcesOf(name: string, files: readonly OpenFile[]): number[] {
  const written = new Set(files.filter(({ writes }) => writes).map(({ position }) => position))
  return files
    .filter(({ layers, writes, position }) => !writes && layers.includes(name) && written.has(position))
    .map(({ position }) => position)
}

/** Old builders copy until all of a file has come: cut short, they would ask for more for ever. */
const isCopied = (name: string, files: readonly OpenFile[]): boolean => sourcesOf(name, files).length > 0

export function createEngineHoles(options: EngineHolesOptions): EngineHoles & { look(): Promise<void> } {
  const now = () => performance.now()
  const most_bytes = options.most_bytes ?? MOST_HOLES_BYTES
  const isDiskFull = options.isDiskFull ?? isReserveTouched
  const openFiles = options.openFiles ?? openLayerFiles
  const works = new Set<Work>()
  const layers = new Map<string, Layer>()
  let begun = 0
  const engineNow = followEngine({ ...options, now, begun: () => begun })
  let calm_at = 0
  let timer: NodeJS.Timeout | undefined
  let is_stopped = false
  let looking = Promise.resolve()

  async function measure(layer: Layer): Promise<void> {
    const { root, name } = layer
    const began = await layerBegan(root, name)
    if (began === undefined || (await isOfImage(root, name))) layer.holes_bytes = 0
    else {
      layer.holes_bytes = await layerHoles(root, name)
      // Who ended before it was read does not have it read; another build of the same steps does.
      layer.work = [...works].find(
        ({ build, ended_at = Infinity }) => ended_at > layer.since && build.madeAt(began),
      )
    }
  }

  /** Takes note of what is read now, and answers the names of it. */
  async function note(files: readonly OpenFile[]): Promise<Set<string>> {
    const seen = new Map<string, boolean>()
    for (const { root, layers: names, holes_bytes } of files.filter(({ writes }) => !writes))
      for (const name of names) {
        if (!layers.has(name))
          layers.set(name, { root, name, since: now(), seen_at: now(), looks: 0, state: 'read' })
        seen.set(name, seen.get(name) === true || holes_bytes >= LARGE_BYTES)
      }
    for (const [name, is_large] of seen) {
      const layer = layers.get(name)!
      layer.looks += 1
      layer.seen_at = now()
      if (layer.holes_bytes === undefined && (is_large || layer.looks >= LOOKS)) await measure(layer)
    }
    return new Set(seen.keys())
  }

  /** Layers that are read and, with others of the same build or of nobody who is known, are more than may be. */
  function tooMuch(seen: ReadonlySet<string>): Layer[] {
    const large = [...layers.values()].filter(({ holes_bytes = 0 }) => holes_bytes >= LARGE_BYTES)
    const sums = new Map<Work | undefined, number>()
    for (const { work, holes_bytes = 0 } of large) sums.set(work, (sums.get(work) ?? 0) + holes_bytes)
    return large.filter(
      ({ name, work, state }) => state !== 'cut' && seen.has(name) && sums.get(work)! > most_bytes,
    )
  }

  function endBuilds(cut: readonly Layer[]): void {
    const guilty = new Set(cut.flatMap(({ work }) => work ?? []))
    if (cut.some(({ work }) => !work)) for (const work of works) if (work.build.usesCached()) guilty.add(work)
    for (const work of guilty) {
      work.ended_at ??= now()
      work.ending.abort()
    }
  }

  async function lookNow(): Promise<void> {
    for (const work of works)
      if (work.ended_at !== undefined && now() - work.ended_at > CALM_MS) works.delete(work)
    const engine = await engineNow()
    if (!engine) return
    const files = await openFiles(engine.pid)
    if (files.length > 0) calm_at = now() + CALM_MS
    const seen = await note(files)
    await leave(seen)
    const found = tooMuch(seen)
    endBuilds(found.filter(({ state }) => state === 'read'))
    for (const layer of found) layer.state = 'told'
    await endCopies(engine.pid, files, found)
    await cut(
      engine.pid,
      found.filter(({ name }) => !isCopied(name, files)),
    )
  }

  /** Leaves nothing to read in layers, until the engine is at the end of all that it reads of them. */
  async function cut(pid: number, found: readonly Layer[]): Promise<void> {
    if (found.length === 0) return
    for (const layer of found) {
      options.log(`The engine reads files that are mostly empty in the layer ${layer.name}: they are cut.`)
      await cutLayer(layer.root, layer.name)
      layer.state = 'cut'
    }
    let seen = new Set<string>()
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (tries > 0) await wait(AGAIN_MS)
      seen = new Set((await openFiles(pid)).flatMap(({ layers: names }) => names))
      if (found.every(({ name }) => !seen.has(name))) break
    }
    await leave(seen)
  }

  /** Forgets layers that are read no more. What was cut must not be taken for whole. */
  async function leave(seen: ReadonlySet<string>): Promise<void> {
    for (const { root, name, state, seen_at } of layers.values()) {
      if (seen.has(name) || (state === 'read' && now() - seen_at < REMEMBERED_MS)) continue
      if (state === 'cut') {
        await spoilLayer(root, name, most_bytes + GIB)
        await options.forget?.(name)
      }
      layers.delete(name)
    }
  }

  /** What is written of a layer that is refused ends, and everything once the disk has no more room. */
  async function endCopies(pid: number, files: readonly OpenFile[], found: readonly Layer[]): Promise<void> {
    const full = new Set(files.map(({ root }) => root).filter(isDiskFull))
    const of_found = new Set(found.flatMap(({ name }) => sourcesOf(name, files)))
    const ending = files.filter(
      ({ root, position, writes }) => writes && (full.has(root) || of_found.has(position)),
    )
    if (ending.length === 0 && full.size === 0) return
    if (await endWrites(pid, ending, () => openFiles(pid)))
      options.log('The engine wrote files for builds that were ended: it was kept from it.')
  }

  const look = (): Promise<void> => (looking = lookNow())
  async function round(): Promise<void> {
    await look().catch((error: unknown) => options.log('What the engine reads cannot be looked at', error))
    timer = undefined
    if (works.size > 0 || now() < calm_at) wake()
    else layers.clear()
  }
  function wake(): void {
    if (!is_stopped) timer ??= setTimeout(() => void round(), options.look_ms ?? LOOK_MS).unref()
  }
  function start(): void {
    begun += 1
    calm_at = now() + CALM_MS
    wake()
  }

  return {
    look,
    start,
    stop() {
      is_stopped = true
      clearTimeout(timer)
    },
    watch(signal, build) {
      const work: Work = { build, ending: new AbortController() }
      works.add(work)
      start()
      return {
        signal: AbortSignal.any([signal, work.ending.signal]),
        filled: () => work.ending.signal.aborted && !signal.aborted,
        settled: () => looking.catch(() => {}),
        stop: () => void (work.ended_at ??= now()),
      }
    },
  }
}
