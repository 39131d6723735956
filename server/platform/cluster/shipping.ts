import type { Connection } from '#server/platform/engine/connection'
import { type Engine, EngineError } from '#server/platform/engine/engine'
import { imagePath } from '#server/platform/engine/images'
import { readJsonLines } from '#server/platform/engine/json-lines'

/** Until the first bytes are there; a large image is read from a disk first. */
const BEGIN_MS = 120_000
/** The member writes what it got before it answers. */
const LOAD_MS = 30 * 60_000

const has = async (engine: Connection, image: string): Promise<boolean> =>
  (await engine.call<object | undefined>({ path: imagePath(image, '/json'), accept: [404] })) !== undefined

/** Brings images from this server's engine to those of members, each once at a time. */
export function createShipping(local: Connection) {
  const under_way = new Map<string, Promise<void>>()

  async function ship(engine: Connection, image: string, signal: AbortSignal): Promise<void> {
    const bytes = await local.stream({ path: imagePath(image, '/get'), signal, deadline_ms: BEGIN_MS })
    const answer = await engine.stream({
      method: 'POST',
      path: '/images/load',
      query: { quiet: true },
      headers: { 'content-type': 'application/x-tar' },
      upload: bytes,
      signal,
      deadline_ms: LOAD_MS,
    })
    for await (const { error } of readJsonLines<{ error?: string }>(answer))
      if (error) throw new EngineError('failed', `The image could not be brought to the server: ${error}`)
    if (!(await has(engine, image)))
      throw new EngineError('failed', 'The server has another image than the one that was brought to it.')
  }

  return {
    /**
     * Answers whether it had to be brought there.
     * @param image its id.
     */
    async ensure(engine: Connection, node_id: string, image: string, signal: AbortSignal): Promise<boolean> {
      if (await has(engine, image)) return false
      const key = `${node_id} ${image}`
      const shipping = under_way.get(key) ?? ship(engine, image, signal)
      under_way.set(key, shipping)
      try {
        await shipping
      } finally {
        under_way.delete(key)
      }
      return true
    },
    /**
     * Removes from a member what was built here and is here no more. This server removes its own by their
     * tags, and an image that was brought by its id has none.
     */
    async removeStale(engine: Pick<Engine, 'listImages' | 'removeImage'>): Promise<void> {
      const brought = await engine.listImages({})
      const here = await local.call<{ Id: string }[]>({
        path: '/images/json',
        query: { all: true },
        keep: (entry) => ({ Id: (entry as { Id: string }).Id }),
      })
      const kept = new Set(here.map(({ Id }) => Id))
      for (const { id } of brought) if (!kept.has(id)) await engine.removeImage(id)
    },
  }
}
