import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildDocument } from '#server/http/openapi'
import { permissionMatrix } from '#server/http/permissions'
import { createSecrets } from '#server/kernel/secrets'
import { createSealing } from '#server/rotation/sealing'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { BEACON_DOMAIN, BEACON_ENDPOINTS, beacons, passes } from './beacons.ts'

let api: TestApi
let project_id: string
let id: string
beforeAll(async () => {
  api = await createTestApi({ domain: BEACON_DOMAIN })
  project_id = (await api.as('admin').post('/api/projects', { name: 'coast' })).body.data.id as string
  id = (await api.as('admin').post('/api/beacons', { name: 'lighthouse', project_id })).body.data.id as string
})
afterAll(() => api.close())

describe('a domain that only has its folder, its routes, its migration and one line', () => {
  it('is found by the rights of the endpoints: a stranger gets what an unknown id gets', async () => {
    expect((await api.as('admin').get(`/api/beacons/${id}`)).body.data.name).toBe('lighthouse')
    for (const caller of ['outsider', 'owner'] as const) {
      const [foreign, unknown] = [
        await api.as(caller).get(`/api/beacons/${id}`),
        await api.as(caller).get('/api/beacons/cat_00000000000000000000'),
      ]
      expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
    }
    expect((await api.as('viewer').post('/api/beacons', { name: 'dim' })).status).toBe(403)
  })
  it('has its rows in the matrix of permissions', () => {
    const [read, write] = permissionMatrix(BEACON_ENDPOINTS)
      .sort((a, b) => a.path.length - b.path.length)
      .reverse()
    expect([read!.answers.viewer, write!.answers.viewer, write!.answers.developer]).toEqual([
      'yes',
      403,
      'yes',
    ])
  })
  it('is found by search and listed in the overview of its project, for its members alone', async () => {
    const found = async (caller: 'admin' | 'owner') =>
      (await api.as(caller).get('/api/search?q=lighthouse')).body.data.map(
        ({ kind }: { kind: string }) => kind,
      )
    expect([await found('admin'), await found('owner')]).toEqual([['beacon'], []])
    const project = (await api.as('admin').get(`/api/projects/${project_id}`)).body.data
    expect(project.counts.beacon).toBe(1)
    expect((await api.as('admin').get(`/api/projects/${project_id}/resources?kind=beacon`)).body.total).toBe(
      1,
    )
  })
  it('keeps its project from being deleted', async () => {
    const answer = await api.as('admin').delete(`/api/projects/${project_id}`)
    expect([answer.status, answer.body.error.message]).toEqual([
      409,
      'The project is not empty: 1 beacon. Move or delete them first.',
    ])
  })
  it('obeys a quota of its own name; another name is no quota', async () => {
    const set = (quotas: object) => api.as('admin').put(`/api/projects/${project_id}`, { quotas })
    expect((await set({ beacons: 1 })).status).toBe(200)
    expect((await api.as('admin').post('/api/beacons', { name: 'second', project_id })).status).toBe(409)
    expect((await set({ lanterns: 1 })).status).toBe(422)
  })
  it('has its channel on the WebSocket, for members of its project alone', async () => {
    const { realtime } = api.services
    const hear = async (caller: 'admin' | 'owner') => {
      const heard: { type: string; data: { text?: string; code?: string } }[] = []
      const peer = {
        send: (text: string) => void heard.push(JSON.parse(text)),
        bufferedBytes: () => 0,
        ping() {},
        pause() {},
        resume() {},
        close() {},
        terminate() {},
      }
      realtime.open(peer, api.actor(caller))
      realtime.message(
        peer,
        JSON.stringify({ type: 'subscribe', channel: `beacons/${id}/flashes`, after: 0 }),
      )
      await poll(() => heard.some(({ type }) => type !== 'subscribed'))
      realtime.close(peer)
      return heard.at(-1)!
    }
    expect((await hear('admin')).data.text).toBe(`flash of ${id}`)
    expect((await hear('owner')).data.code).toBe('NOT_FOUND')
  })
  it('has its group in the API document', () => {
    const document = buildDocument(BEACON_ENDPOINTS, api.services.http.document) as {
      tags: { name: string }[]
      paths: Record<string, Record<string, { tags: string[] }>>
    }
    expect(document.tags).toContainEqual({ name: 'beacons', description: 'Lights that a test lights.' })
    expect(document.paths['/api/beacons/{id}']!.get!.tags).toEqual(['beacons'])
  })
  it('has its secrets sealed anew by a rotation of the key', async () => {
    const { db } = api.kernel
    const next = createSecrets(Buffer.alloc(32, 9), Buffer.alloc(32, 7))
    const sealing = createSealing({ db, secrets: next, columns: beacons.sealed! })
    await sealing.seal(new AbortController().signal, () => undefined)
    const sealed = db.sql('SELECT secret FROM beacons WHERE id = ?').pluck().get(id) as string
    expect(createSecrets(Buffer.alloc(32, 9)).open(sealed, `beacons/secret/${id}`)).toBe(
      'secret of lighthouse',
    )
    expect(api.services.rotation.left()).toBeGreaterThan(0)
  })
  it('runs its schedules and forgets what is past its time', async () => {
    api.kernel.clock.advance(120_000)
    await api.services.wake('cleanup')
    expect(passes).toContain('blink')
    expect(await api.services.cleanup()).toHaveProperty('beacons')
  })
  it('goes along with an app: into its variables, to another project, and away with it', async () => {
    const git_url = 'https://git.example.com/team/coast.git'
    api.fakes.git.commit(git_url, 'main', { 'index.html': '<p>hello' })
    const admin = api.as('admin')
    const app_id = (await admin.post('/api/apps', { name: 'coast', git_url, soak_seconds: 0 })).body.data.id
    await api.services.jobs.idle()
    const beacon = (await admin.post('/api/beacons', { name: 'buoy', app_id })).body.data.id
    const project = () => api.kernel.db.sql('SELECT project_id FROM beacons WHERE id = ?').pluck().get(beacon)
    const asked = api.fakes.engine.calls.findLast(({ method }) => method === 'ensureRelease')!.args[0]
    expect(JSON.stringify(asked)).toContain(`"BEACON_OF":"${app_id}"`)
    expect((await admin.post(`/api/apps/${app_id}/move`, { project_id })).status).toBe(200)
    expect(project()).toBe(project_id)
    await api.services.jobs.idle()
    await admin.delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    expect(project()).toBeUndefined()
  })
})
