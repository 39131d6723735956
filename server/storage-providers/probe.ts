import { randomBytes } from 'node:crypto'
import { firstBytes } from '#server/kernel/first-bytes'
import { type ObjectStore, ObjectStoreError } from '#server/platform/objectstore/objectstore'

const PROBE_BYTES = 4096
const MOST_MS = 60_000

async function tryOut(store: ObjectStore, signal: AbortSignal): Promise<void> {
  const key = `portreeve-probe-${randomBytes(8).toString('hex')}`
  const body = randomBytes(PROBE_BYTES)
  await store.put(
    key,
    (async function* () {
      yield body
    })(),
    { signal },
  )
  const { bytes, truncated } = await firstBytes(store.get(key, undefined, signal), PROBE_BYTES)
  if (truncated || !bytes.equals(body))
    throw new ObjectStoreError('failed', 'What was read back is not what was written.')
  await store.delete(key, signal)
}

/**
 * Writes an object, reads it back and deletes it: what a backup will need, proven. A destination may be somebody
 * else's by now, so that neither the size of its answers nor their time is left to it.
 * @param time aborts when it is over; nothing goes on after it.
 */
export async function probe(store: ObjectStore, time = AbortSignal.timeout(MOST_MS)): Promise<void> {
  const late = Promise.withResolvers<never>()
  const end = () =>
    late.reject(new ObjectStoreError('unreachable', 'The destination did not answer in time.'))
  time.addEventListener('abort', end, { once: true })
  try {
    await Promise.race([late.promise, tryOut(store, time)])
  } finally {
    time.removeEventListener('abort', end)
    await store.close()
  }
}
