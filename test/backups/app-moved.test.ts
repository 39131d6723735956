import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { pretendServer } from '../databases/server.ts'
import { type PretendedVolumes, pretendVolumes } from './pretend-volumes.ts'

let api: TestApi
let volumes: PretendedVolumes
let app_id: string
let elsewhere: string
let backup_id: string

const post = async (path: string, body: object = {}) => {
  const answer = await api.as('admin').post(path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  await api.services.jobs.idle()
  return answer.body.data
}
const list = async (path: string) => (await api.as('admin').get(path)).body.data
const held = (id: string) => volumes.held.get(api.services.volumes.dataOf(id))
const restored = () =>
  api
    .events()
    .filter(({ type }) => type.startsWith('backup.restore_') && type !== 'backup.restore_progress')
    .at(-1)

/** An app with a volume of its own, one that it shares, and a database; backed up, and then moved. */
beforeEach(async () => {
  api = await createTestApi()
  volumes = pretendVolumes(api)
  pretendServer(api)
  commitShop(api, 'one')
  elsewhere = (await post('/api/projects', { name: 'Elsewhere' })).id
  const database_id = (await post('/api/databases', { name: 'orders', engine: 'postgres' })).id
  const own = (await post('/api/volumes', { name: 'own' })).id
  const shared = (await post('/api/volumes', { name: 'shared', access: 'shared' })).id
  app_id = (await post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })).id
  await post(`/api/apps/${app_id}/mounts`, { path: '/own', volume_id: own })
  const mount = await post(`/api/apps/${app_id}/mounts`, { path: '/shared', volume_id: shared })
  await post(`/api/databases/${database_id}/links`, { app_id, key: 'DATABASE_URL' })
  await post(`/api/apps/${app_id}/deploy`)
  for (const id of [own, shared]) volumes.held.set(id, `FILES OF ${id === own ? 'own' : 'shared'}`)
  backup_id = (await post('/api/backups', { target: 'app', target_id: app_id })).id
  await api.as('admin').delete(`/api/apps/${app_id}/mounts/${mount.id}`)
  await post(`/api/apps/${app_id}/deploy`)
  await post(`/api/apps/${app_id}/move`, { project_id: elsewhere })
})
afterEach(() => api.close())

const LEFT_OUT = [
  'The volume shared stays in the project that the app was in when it was backed up.',
  'The database orders stays in the project that the app was in when it was backed up.',
]

it('a backup from before a move brings nothing along that the app left behind', async () => {
  await post(`/api/backups/${backup_id}/restore`, { mode: 'new', name: 'copy' })
  expect(restored()).toMatchObject({
    type: 'backup.restore_succeeded',
    payload: { left_out: expect.arrayContaining(LEFT_OUT) },
  })
  expect((await list('/api/databases')).map(({ project_id }: any) => project_id)).not.toContain(elsewhere)
  const here = (await list('/api/volumes')).filter(({ project_id }: any) => project_id === elsewhere)
  expect(here.map(({ name }: any) => name).sort()).toEqual(['copy-own', 'own'])
  for (const { id } of here) expect(held(id)).toBe('FILES OF own')
})

it('in place it leaves alone what has the same name in the new project', async () => {
  const other = await post('/api/databases', { name: 'orders', engine: 'postgres', project_id: elsewhere })
  const before = (await list('/api/databases')).find(({ id }: any) => id === other.id)
  await post(`/api/backups/${backup_id}/restore`, { mode: 'in_place' })
  expect(restored()).toMatchObject({
    type: 'backup.restore_succeeded',
    payload: { left_out: expect.arrayContaining(LEFT_OUT) },
  })
  const after = (await api.as('admin').get(`/api/databases/${other.id}`)).body.data
  expect(after).toMatchObject({ status: 'running', previous_volume: null, id: before.id })
})

it('on trial it tells nothing of what would not come back', async () => {
  await post(`/api/backups/${backup_id}/verify`)
  const { verification } = (await api.as('admin').get(`/api/backups/${backup_id}`)).body.data
  expect(verification).toMatchObject({
    status: 'succeeded',
    counts: { 'volumes/own.tar': expect.any(Number) },
  })
  expect(Object.keys(verification.counts)).toEqual(['volumes/own.tar'])
})
