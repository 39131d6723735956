import type { DiskCache, DiskImage, EngineDisk } from '#server/platform/engine/disk-usage'

/** Names as people write them: without the default registry, with a tag. */
const named = (reference: string): string => {
  const short = reference.replace(/^(?:index\.)?docker\.io\//, '').replace(/^library\//, '')
  return /@|:[^/]*$/.test(short) ? short : `${short}:latest`
}

/**
 * Images that may go. What a container uses or a domain needs stays. So does what nothing could bring back: an
 * image with a name that was not made by us and has no registry to come from again. One without any name is a stage
 * that the classic builder left; it gets no labels of ours. Those of another installation are its own.
 */
export function unusedImages({ images }: EngineDisk, needed: readonly string[]): DiskImage[] {
  const kept = new Set(needed.map(named))
  return images.filter(
    ({ id, tags, digests, containers, made_by }) =>
      containers === 0 &&
      (made_by === 'us' || (made_by === 'nobody' && (digests.length > 0 || tags.length === 0))) &&
      ![id, ...tags, ...digests].some((name) => kept.has(named(name)) || kept.has(name)),
  )
}

/** Entries of the build cache that were not used since a time (ISO). */
export const unusedCache = ({ build_cache }: EngineDisk, before: string): DiskCache[] =>
  build_cache.filter(({ in_use, last_used_at }) => !in_use && Date.parse(last_used_at) <= Date.parse(before))

/** Entries that go when no more than so much may be left: those used longest ago. */
export function cacheAbove({ build_cache }: EngineDisk, keep_bytes: number): DiskCache[] {
  let above = build_cache.reduce((sum, { bytes }) => sum + bytes, 0) - keep_bytes
  return build_cache
    .filter(({ in_use }) => !in_use)
    .sort((a, b) => Date.parse(a.last_used_at) - Date.parse(b.last_used_at))
    .filter(({ bytes }) => {
      if (above <= 0) return false
      above -= bytes
      return true
    })
}
