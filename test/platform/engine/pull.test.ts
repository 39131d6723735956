import { afterEach, expect, test } from 'vitest'
import { createConnection } from '#server/platform/engine/connection'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createDiskRoom } from '#server/platform/engine/disk-room'
import type { Image } from '#server/platform/engine/engine'
import type { Images } from '#server/platform/engine/images'
import { createPull, pullError } from '#server/platform/engine/pull'
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

test('what a registry says is read at its ends, so that a long refusal keeps nobody waiting for minutes', async () => {
  const words = `manifest unknown: ${'repository '.repeat(100_000)}`
  const server = await createEngineStandIn((_, response) => json(response, { error: words }))
  const engine = createDockerEngine({ docker_host: server.docker_host })
  closing.push(engine.close, server.close)
  const pulling = engine.pullImage('team/shop:1', { onLog: () => undefined }, new AbortController().signal)
  await expect(pulling).rejects.toMatchObject({ code: 'image_not_found' })
  const odd = pullError('team/shop:1', `${'repository '.repeat(100_000)} is locked`)
  expect([odd.code, odd.message.length < 1000]).toEqual(['failed', true])
})

test('an image that says more of itself than an answer may hold is removed, or no list could be read any more', async () => {
  const removed: string[] = []
  const server = await createEngineStandIn(({ method, path }, response) => {
    if (method === 'DELETE') removed.push(path)
    if (method !== 'GET') return json(response, {})
    response.writeHead(200)
    response.end(`{"Id":"sha256:1","Config":{"Labels":{"a":"${'x'.repeat(65 * 1024 ** 2)}"}}}`)
  })
  const engine = createDockerEngine({ docker_host: server.docker_host })
  closing.push(engine.close, server.close)
  const pulling = engine.pullImage('team/huge:1', { onLog: () => undefined }, new AbortController().signal)
  await expect(pulling).rejects.toMatchObject({ code: 'image_refused' })
  expect(removed).toEqual(['/images/team/huge:1'])
})
