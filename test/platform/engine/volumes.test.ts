import { afterEach, expect, test } from 'vitest'
import { createConnection } from '#server/platform/engine/connection'
import { createTurn } from '#server/platform/engine/turn'
import { createLabelScope } from '#server/platform/engine/labels'
import { createVolumes } from '#server/platform/engine/volumes'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

test('usage is asked for one at a time, since the engine refuses a second one', async () => {
  let walking = false
  let first = true
  const server = await createEngineStandIn((request, response) => {
    // Running containers can be listed at any time.
    if (request.path.includes('/containers/')) return json(response, [])
    if (walking) return json(response, { message: 'a disk usage operation is already running' }, 409)
    // The first one fails, which must not be the end of the next.
    const status = first ? 500 : 200
    first = false
    walking = true
    // Long enough for all who do not take turns to arrive meanwhile.
    setTimeout(() => {
      walking = false
      json(response, { Volumes: [] }, status)
    }, 50)
  })
  const connection = createConnection(server.docker_host)
  closing.push(() => connection.close(), server.close)
  const volumes = createVolumes(connection, createLabelScope('here'), createTurn())
  const asked = await Promise.allSettled([volumes.usage(), volumes.usage(), volumes.usage()])
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
})
