import { type ObjectStore, ObjectStoreError, type PutOptions } from '#server/platform/objectstore/objectstore'

/**
 * Stores an object and asks for it once more: what a backup replaces, or is the last copy of, is deleted after this.
 * A proxy in front of a destination, or what took over its name, says yes to everything and keeps nothing.
 */
export async function putWhole(
  store: ObjectStore,
  key: string,
  source: AsyncIterable<Uint8Array>,
  options: PutOptions = {},
): Promise<{ size_bytes: number }> {
  const written = await store.put(key, source, options)
  const found = await store.stat(key, options.signal)
  if (found?.size_bytes === written.size_bytes) return written
  throw new ObjectStoreError(
    'failed',
    'The destination said that it took everything, but does not hold what was written. Look whether it is still the one that was set up.',
  )
}
