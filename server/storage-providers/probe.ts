import { randomBytes } from 'node:crypto'
import { type ObjectStore, ObjectStoreError } from '#server/platform/objectstore/objectstore'

const PROBE_BYTES = 4096

/** Writes an object, reads it back and deletes it: what a backup will need, proven. */
export async function probe(store: ObjectStore): Promise<void> {
  const key = `portreeve-probe-${randomBytes(8).toString('hex')}`
  const body = randomBytes(PROBE_BYTES)
  try {
    await store.put(
      key,
      (async function* () {
        yield body
      })(),
    )
    const chunks: Uint8Array[] = []
    for await (const chunk of store.get(key)) chunks.push(chunk)
    if (!Buffer.concat(chunks).equals(body))
      throw new ObjectStoreError('failed', 'What was read back is not what was written.')
    await store.delete(key)
  } finally {
    await store.close()
  }
}
