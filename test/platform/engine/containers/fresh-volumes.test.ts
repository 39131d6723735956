import { afterEach, expect, test } from 'vitest'
import { createConnection } from '#server/platform/engine/connection'
import type { VolumeMount } from '#server/platform/engine/containers/body'
import { createFreshVolumes } from '#server/platform/engine/containers/fresh-volumes'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const mount = (Source: string): VolumeMount => ({
  Type: 'volume',
  Source,
  Target: `/${Source}`,
  ReadOnly: false,
})

/** An engine with one container that has these volumes, to write to or not. */
async function freshOn(there: Record<string, boolean>) {
  const server = await createEngineStandIn((_, response) =>
    json(response, [
      { Id: 'c9', Mounts: Object.entries(there).map(([Name, RW]) => ({ Type: 'volume', Name, RW })) },
    ]),
  )
  const connection = createConnection(server.docker_host)
  closing.push(() => connection.close(), server.close)
  return createFreshVolumes(connection)
}

test('the engine copies nothing of an image into a volume in which another container may lay a link', async () => {
  const fresh = await freshOn({ vol_a: true, vol_b: false })
  const mounts = await fresh.within(['vol_a', 'vol_b', 'vol_c'].map(mount), async (made) => made)
  expect(mounts?.map(({ VolumeOptions }) => VolumeOptions)).toEqual([{ NoCopy: true }, undefined, undefined])
})

test('nobody gets a volume while it is filled, and others are not waited for', async () => {
  const fresh = await freshOn({})
  const order: string[] = []
  const filling = Promise.withResolvers<void>()
  const first = fresh.within([mount('vol_a')], async () => {
    await filling.promise
    order.push('first')
  })
  const second = fresh.within([mount('vol_a'), mount('vol_b')], async () => order.push('second'))
  await fresh.within([mount('vol_c')], async () => order.push('other'))
  filling.resolve()
  await Promise.all([first, second])
  expect(order).toEqual(['other', 'first', 'second'])
})

test('a container that could not be created keeps nobody from its volume', async () => {
  const fresh = await freshOn({})
  const failing = fresh.within([mount('vol_a')], () => Promise.reject(new Error('no such image')))
  await expect(failing).rejects.toThrow('no such image')
  expect(await fresh.within([mount('vol_a')], async () => 'made')).toBe('made')
})
