import { afterEach, expect, test } from 'vitest'
import { createConnection } from '#server/platform/engine/connection'
import { createDiskRoom } from '#server/platform/engine/disk-room'
import type { Image } from '#server/platform/engine/engine'
import type { Images } from '#server/platform/engine/images'
import { createPull } from '#server/platform/engine/pull'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

test('an image that a digest pins is taken as it is here, unless it must be open to everybody', async () => {
  const pulled: string[] = []
  const server = await createEngineStandIn((request, response) => {
    pulled.push(request.path)
    json(response, { error: 'unauthorized: authentication required' })
  })
  const connection = createConnection(server.docker_host)
  closing.push(() => connection.close(), server.close)
  const here = { id: 'sha256:here' } as Image
  const images = { find: async () => here } as unknown as Images
  const pull = createPull(connection, images, createDiskRoom(connection))
  const reference = `registry.example.com/secret@sha256:${'a'.repeat(64)}`
  const { signal } = new AbortController()
  const onLog = () => undefined
  expect([await pull(reference, { onLog }, signal), pulled]).toEqual([here, []])
  await expect(pull(reference, { anonymously: true, onLog }, signal)).rejects.toThrow()
  expect(pulled).toHaveLength(1)
})
