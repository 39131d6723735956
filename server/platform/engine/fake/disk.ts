import type { DiskCache } from '../disk-usage.ts'
import type { Engine } from '../engine.ts'
import type { FakeImages } from './images.ts'
import type { FakeInstances } from './instances.ts'
import type { FakeVolumes } from './volumes.ts'

interface Parts {
  images: FakeImages
  instances: FakeInstances
  volumes: FakeVolumes
  build_cache: DiskCache[]
  disk: { free_for_copies?: number }
  called(method: keyof Engine, ...args: unknown[]): void
}

/** The disk of the fake engine: its images, and build cache that a test puts there. */
export function fakeDisk({
  called,
  images,
  instances,
  volumes,
  build_cache,
  disk,
}: Parts): Pick<
  Engine,
  'dataDirectory' | 'freeForCopies' | 'diskUsage' | 'imageNamedAt' | 'pruneBuildCache'
> {
  return {
    async dataDirectory() {
      called('dataDirectory')
      return ''
    },
    async freeForCopies() {
      called('freeForCopies')
      return disk.free_for_copies
    },
    async diskUsage() {
      called('diskUsage')
      const made_of = (id: string) => instances.all().filter(({ record }) => record.image === id).length
      const found = images.all().map(({ image, subject }) => ({
        id: image.id,
        tags: [...image.tags],
        digests: image.digest ? [image.digest] : [],
        own_bytes: image.size_bytes,
        containers: made_of(image.id),
        made_by: subject.dockerfile ? ('us' as const) : ('nobody' as const),
        since: image.created_at,
      }))
      return {
        directory: '',
        layers_bytes: found.reduce((sum, { own_bytes }) => sum + own_bytes, 0),
        images: found,
        containers: { count: instances.all().length, bytes: 0 },
        volumes: { count: volumes.ids().length, bytes: 4096 * volumes.ids().length },
        build_cache: build_cache.map((entry) => ({ ...entry })),
      }
    },
    async imageNamedAt(id) {
      called('imageNamedAt', id)
      return images.find(id)?.image.created_at
    },
    async pruneBuildCache(limit) {
      called('pruneBuildCache', limit)
      const before = Date.now() - (limit.unused_for_s ?? 0) * 1000
      let left = build_cache.reduce((sum, { bytes }) => sum + bytes, 0)
      let freed = 0
      for (const entry of build_cache.filter(({ in_use }) => !in_use)) {
        const goes =
          limit.keep_bytes === undefined ? Date.parse(entry.last_used_at) <= before : left > limit.keep_bytes
        if (!goes) continue
        build_cache.splice(build_cache.indexOf(entry), 1)
        left -= entry.bytes
        freed += entry.bytes
      }
      return freed
    },
  }
}
