import { randomBytes } from 'node:crypto'
import { firstBytes } from '#server/kernel/first-bytes'
import { type ObjectStore, ObjectStoreError } from '#server/platform/objectstore/objectstore'

const PROBE_BYTES = 4096
const MOST_MS = 60_000

async function tryOut(store: ObjectStore): Promise<void> {
  const key = `portreeve-probe-${randomBytes(8).toString('hex')}`
  const body = randomBytes(PROBE_BYTES)
  await store.put(
    key,
    (async function* () {
      yield body
    })(),
  )
  const { bytes, truncated } = await firstBytes(store.get(key), PROBE_BYTES)
  if (truncated || !bytes.equals(body))
    throw new ObjectStoreError('failed', 'What was read back is not what was written.')
  await store.delete(key)
}

/**
 * Writes an object, reads it back and deletes it: what a backup will need, proven. A destination may be somebody
 * else's by now, so that neither the size of its answers nor their time is left to it.
 */
export async function probe(store: ObjectStore, timeout_ms = MOST_MS): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new ObjectStoreError('unreachable', 'The destination did not answer in time.')),
    timeout_ms,
  )
  try {
    await Promise.race([tryOut(store), late.promise])
  } finally {
    clearTimeout(timer)
    await store.close()
  }
}
