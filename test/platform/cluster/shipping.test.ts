import { expect, test } from 'vitest'
import { createShipping } from '#server/platform/cluster/shipping'
import type { Connection } from '#server/platform/engine/connection'
import type { Image } from '#server/platform/engine/engine'

test('a member keeps what this server has, and loses what this server has no more', async () => {
  const local = { call: async () => [{ Id: 'sha256:live' }, { Id: 'sha256:earlier' }] }
  const removed: string[] = []
  await createShipping(local as unknown as Connection).removeStale({
    listImages: async () => ['sha256:live', 'sha256:pruned', 'sha256:earlier'].map((id) => ({ id }) as Image),
    removeImage: async (id) => removed.push(id) > 0,
  })
  expect(removed).toEqual(['sha256:pruned'])
})
