import { join, relative } from 'node:path'
import { type Actor, PLATFORM } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Directories } from '#server/kernel/directories'
import { conflict } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import type { Log } from '#server/kernel/log'
import { askingEngine } from '#server/platform/engine/asking'
import type { DiskCache, DiskImage, EngineDisk } from '#server/platform/engine/disk-usage'
import type { Engine } from '#server/platform/engine/engine'
import { cacheAbove, unusedCache, unusedImages } from './candidates.ts'
import { bytesBelow, bytesOf, diskOf, filesBelow, type FoundFile, removeFile } from './folders.ts'
import type { DiskUsage, PruneRequest, PruneResult, PruneTarget } from './schema.ts'

/** Limits that the clock prunes by; they are settings of the installation. */
export interface DiskLimits {
  /** Days after which unused images go. */
  unused_image_retention_days: number
  /** Days after which build cache that was not used goes. */
  build_cache_retention_days: number
  /** Share of the disk that the build cache may take, in percent. */
  build_cache_disk_percent: number
  /** Share of the disk in use from which everything unused goes, in percent. */
  disk_pressure_percent: number
}
export interface DiskOptions {
  db: Db
  clock: Clock
  log: Log
  audit: AuditTrail
  events: Pick<Events, 'append'>
  engine: Pick<Engine, 'dataDirectory' | 'diskUsage' | 'imageNamedAt' | 'pruneBuildCache' | 'removeImage'>
  directories: Directories
  data_directory: string
  limits(): DiskLimits
  /** Ids and names of images that domains need, though no container may use them now. */
  neededImages(): Promise<readonly string[]>
  imageRemoved(image_id: string): void
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Old enough that no build or deployment under way is about to use it. */
const YOUNGEST_IMAGE_MS = HOUR_MS
const LOGS_OLDER_MS = 7 * DAY_MS
const NAMES = 100

interface Plan {
  images: DiskImage[]
  cache: DiskCache[]
  logs: FoundFile[]
}
interface Wish {
  targets: readonly PruneTarget[]
  images_unused_ms: number
  cache_unused_ms: number
  /** The build cache may keep this much. */
  cache_keep_bytes?: number
}
const sumOf = (parts: readonly { bytes: number }[]) => parts.reduce((sum, { bytes }) => sum + bytes, 0)
const own = (image: DiskImage) => ({ bytes: image.own_bytes })

/** What takes the disk, and what may go from it. */
export function createDiskService(options: DiskOptions) {
  const { clock, engine, directories, data_directory, log } = options
  let under_way = false
  let engine_directory: string | undefined

  const measureEngine = (): Promise<EngineDisk> => askingEngine(() => engine.diskUsage())
  const enginesDisk = (found: EngineDisk) =>
    diskOf(found.directory) ?? diskOf(data_directory) ?? { device: '', total_bytes: 0, free_bytes: 0 }

  function disksOf(found: EngineDisk): DiskUsage['disks'] {
    const disks = [
      { path: found.directory, holds: 'engine' as const, disk: diskOf(found.directory) },
      { path: data_directory, holds: 'data' as const, disk: diskOf(data_directory) },
    ]
    const shown = new Map<string, DiskUsage['disks'][number]>()
    for (const { path, holds, disk } of disks) {
      if (!disk) continue
      const { device, total_bytes, free_bytes } = disk
      const known = shown.get(device)
      if (known) known.holds.push(holds)
      else shown.set(device, { path, holds: [holds], total_bytes, free_bytes })
    }
    return [...shown.values()]
  }

  /** Images that nothing needs and that were not pulled or named lately, e.g. by a deployment under way. */
  async function imagesToGo(found: EngineDisk, unused_ms: number): Promise<DiskImage[]> {
    const before = clock.now() - Math.max(unused_ms, YOUNGEST_IMAGE_MS)
    const old: DiskImage[] = []
    for (const image of unusedImages(found, await options.neededImages())) {
      const at = await engine.imageNamedAt(image.id)
      if (Math.max(Date.parse(image.since), at === undefined ? 0 : Date.parse(at)) <= before) old.push(image)
    }
    return old
  }
  async function oldLogs(): Promise<FoundFile[]> {
    const old: FoundFile[] = []
    for await (const file of filesBelow(join(data_directory, 'logs')))
      if (file.changed_ms < clock.now() - LOGS_OLDER_MS) old.push(file)
    return old
  }
  async function planOf(found: EngineDisk, wish: Wish): Promise<Plan> {
    const has = (target: PruneTarget) => wish.targets.includes(target)
    const before = new Date(clock.now() - wish.cache_unused_ms).toISOString()
    const unused = has('build_cache') ? unusedCache(found, before) : []
    const above =
      has('build_cache') && wish.cache_keep_bytes !== undefined
        ? cacheAbove(found, wish.cache_keep_bytes)
        : []
    return {
      images: has('images') ? await imagesToGo(found, wish.images_unused_ms) : [],
      cache: [...new Set([...unused, ...above])],
      logs: has('logs') ? await oldLogs() : [],
    }
  }
  function itemsOf({ images, cache, logs }: Plan, targets: readonly PruneTarget[]): PruneResult['items'] {
    const names = {
      images: images.map(({ id, tags, digests }) => tags[0] ?? digests[0] ?? id),
      build_cache: cache.map(({ id }) => id),
      logs: logs.map(({ path }) => relative(data_directory, path)),
    }
    const parts = { images: images.map(own), build_cache: cache, logs }
    return targets.map((target) => ({
      target,
      count: parts[target].length,
      bytes: sumOf(parts[target]),
      names: names[target].slice(0, NAMES),
    }))
  }

  /** Does it, and answers what is free now that was not before. What is in use by now stays. */
  async function carryOut(plan: Plan, wish: Wish, before: EngineDisk): Promise<number> {
    let freed = 0
    if (plan.cache.length > 0) {
      freed += await engine.pruneBuildCache({ unused_for_s: Math.floor(wish.cache_unused_ms / 1000) })
      if (wish.cache_keep_bytes !== undefined)
        freed += await engine.pruneBuildCache({ keep_bytes: wish.cache_keep_bytes })
    }
    let removed = 0
    for (const { id } of plan.images) {
      if (!(await engine.removeImage(id))) continue
      options.imageRemoved(id)
      removed += 1
    }
    if (removed > 0) freed += Math.max(0, before.layers_bytes - (await measureEngine()).layers_bytes)
    for (const { path, bytes } of plan.logs) {
      await removeFile(path)
      freed += bytes
    }
    return freed
  }
  function emit(actor: Actor, because: string, { freed_bytes, items }: PruneResult): void {
    const counts = Object.fromEntries(items.map(({ target, count }) => [target, count]))
    options.db.tx(() => {
      options.events.append({
        type: 'system.pruned',
        actor_id: actor.user_id || null,
        payload: { because, freed_bytes, ...counts },
      })
      options.audit.record(actor, {
        action: 'system.prune',
        resource_type: 'system',
        resource_id: null,
        project_id: null,
        after: { because, freed_bytes, ...counts },
      })
    })
    log.info('Freed disk space', { because, freed_bytes, ...counts })
  }
  async function run(actor: Actor, because: string, wish: Wish, found: EngineDisk): Promise<PruneResult> {
    if (under_way) throw conflict('The disk is being pruned already. Wait for its end.')
    under_way = true
    try {
      const plan = await planOf(found, wish)
      const items = itemsOf(plan, wish.targets)
      const freed_bytes = await askingEngine(() => carryOut(plan, wish, found))
      const result = { dry_run: false, freed_bytes, items }
      if (items.some(({ count }) => count > 0) || actor !== PLATFORM) emit(actor, because, result)
      return result
    } finally {
      under_way = false
    }
  }
  const allOf = (unused_ms: number, targets: readonly PruneTarget[]): Wish => ({
    targets,
    images_unused_ms: unused_ms,
    cache_unused_ms: unused_ms,
  })
  const isTight = (found: EngineDisk): boolean => {
    const { total_bytes, free_bytes } = enginesDisk(found)
    return total_bytes > 0 && 1 - free_bytes / total_bytes > options.limits().disk_pressure_percent / 100
  }

  return {
    async usage(): Promise<DiskUsage> {
      const found = await measureEngine()
      const { images, build_cache, containers, volumes } = found
      const { total_bytes, free_bytes } = enginesDisk(found)
      const logs = {
        deployments_bytes: await bytesBelow(directories.logs),
        access_bytes: await bytesBelow(directories.access_logs),
        runtime_bytes: await bytesBelow(join(data_directory, 'logs', 'runtime')),
      }
      const backups = await bytesBelow(directories.backups)
      const base = join(data_directory, 'portreeve.db')
      const database = await bytesOf(base, `${base}-wal`, `${base}-shm`)
      const logs_bytes = await bytesBelow(join(data_directory, 'logs'))
      const all = await bytesBelow(data_directory)
      const unused = await imagesToGo(found, 0)
      return {
        measured_at: clock.iso(),
        disks: disksOf(found),
        total_bytes,
        free_bytes,
        images: {
          count: images.length,
          bytes: found.layers_bytes,
          reclaimable_bytes: sumOf(unused.map(own)),
        },
        containers,
        volumes,
        build_cache: {
          count: build_cache.length,
          bytes: sumOf(build_cache),
          reclaimable_bytes: sumOf(build_cache.filter(({ in_use }) => !in_use)),
        },
        logs: { bytes: logs_bytes, ...logs },
        backups: { bytes: backups },
        database: { bytes: database },
        other: { bytes: Math.max(0, all - logs_bytes - backups - database) },
      }
    },
    async prune(actor: Actor, { dry_run, targets, older_than_hours }: PruneRequest): Promise<PruneResult> {
      const wish = allOf(older_than_hours * HOUR_MS, [...new Set(targets)])
      const found = await measureEngine()
      if (!dry_run) return run(actor, 'asked for', wish, found)
      const items = itemsOf(await planOf(found, wish), wish.targets)
      return { dry_run, freed_bytes: sumOf(items), items }
    },
    /** By the clock: what is older than the limits say, or all that is unused when the disk is nearly full. */
    async tidy(): Promise<PruneResult | undefined> {
      if (under_way) return undefined
      const found = await measureEngine()
      const limits = options.limits()
      const targets = ['images', 'build_cache'] as const
      if (isTight(found)) return run(PLATFORM, 'the disk is nearly full', allOf(0, targets), found)
      const { total_bytes } = enginesDisk(found)
      const wish: Wish = {
        targets,
        images_unused_ms: limits.unused_image_retention_days * DAY_MS,
        cache_unused_ms: limits.build_cache_retention_days * DAY_MS,
        ...(total_bytes > 0
          ? { cache_keep_bytes: Math.floor((total_bytes * limits.build_cache_disk_percent) / 100) }
          : {}),
      }
      return run(PLATFORM, 'age and share of the disk', wish, found)
    },
    /**
     * Makes room before work that needs so much of the engine's disk. Answers what it freed;
     * undefined where there was room. The disk is looked at first, which costs nothing.
     */
    async makeRoom(bytes: number): Promise<number | undefined> {
      engine_directory ??= await engine.dataDirectory()
      const disk = diskOf(engine_directory) ?? diskOf(data_directory)
      if (under_way || !disk || disk.free_bytes >= bytes) return undefined
      const wish = allOf(0, ['images', 'build_cache'])
      return (await run(PLATFORM, 'a build needs room', wish, await measureEngine())).freed_bytes
    },
  }
}
export type DiskService = ReturnType<typeof createDiskService>
