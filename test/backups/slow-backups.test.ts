import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { pretendVolumes } from './pretend-volumes.ts'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await api.close()
})

it('backups of two projects that nothing comes of keep nobody else from making theirs', async () => {
  const patience: (() => void)[] = []
  const begin = globalThis.setInterval
  vi.spyOn(globalThis, 'setInterval').mockImplementation(((work: () => void, ...rest: unknown[]) => {
    if (new Error().stack?.includes('slow-streams')) patience.push(work)
    return begin(work, ...(rest as [number]))
  }) as typeof setInterval)
  const volumes = pretendVolumes(api)
  const goOn: (() => void)[] = []
  const post = async (path: string, body: object) => {
    const answer = await api.as('admin').post(path, body)
    expect([answer.status, answer.body]).toMatchObject([201, {}])
    return answer.body.data
  }
  const statusOf = async (id: string) => (await api.as('admin').get(`/api/backups/${id}`)).body.data.status
  const backUp = async (name: string) => {
    const { id: project_id } = await post('/api/projects', { name })
    const { id } = await post('/api/volumes', { name: 'data', project_id })
    volumes.held.set(id, 'FILES')
    return (await post('/api/backups', { target: 'volume', target_id: id })).id as string
  }
  volumes.onRead = () => new Promise<void>((resolve) => goOn.push(resolve))
  const held = [await backUp('one'), await backUp('two')]
  await expect.poll(() => goOn.length).toBe(2)
  delete volumes.onRead
  const honest = await backUp('three')
  expect(await statusOf(honest)).toBe('queued')
  for (const look of patience) look()
  await expect.poll(() => statusOf(honest)).toBe('succeeded')
  expect(await Promise.all(held.map(statusOf))).toEqual(['running', 'running'])
  for (const resolve of goOn) resolve()
  await api.services.jobs.idle()
  expect(await Promise.all(held.map(statusOf))).toEqual(['succeeded', 'succeeded'])
})
