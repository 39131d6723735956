import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createPreviewWorld, FORK_URL, type PreviewWorld } from './harness.ts'

let world: PreviewWorld
const developer = () => world.api.as('developer')
const get = async (path: string) => (await world.api.as('owner').get(path)).body.data
const volumes = async (): Promise<string[]> =>
  (await get('/api/volumes')).map(({ name }: { name: string }) => name).sort()
const mounts = (app_id: string) => get(`/api/apps/${app_id}/mounts`)
afterEach(() => world.close())

describe('an app with volumes, files and several instances', () => {
  beforeEach(async () => {
    world = await createPreviewWorld({ settings: { forks: 'approval' } })
    const { project_id } = await get(`/api/apps/${world.app_id}`)
    const made = await developer().post('/api/volumes', { project_id, name: 'uploads', access: 'shared' })
    const mount = (body: object) => developer().post(`/api/apps/${world.app_id}/mounts`, body)
    expect((await mount({ volume_id: made.body.data.id, path: '/uploads' })).status).toBe(201)
    expect((await mount({ content: 'token = 5913 gulls', path: '/etc/shop.conf' })).status).toBe(201)
    await developer().put(`/api/apps/${world.app_id}/scaling`, { replicas: 3 })
    await world.idle()
  })

  it('has previews with one instance, an empty volume of their own, and the files', async () => {
    const sha = world.commit('first')
    await world.pullRequest('opened', { sha })
    await world.idle()
    const { preview_app_id, status } = await world.preview()
    expect(status).toBe('running')
    expect((await get(`/api/apps/${preview_app_id}`)).replicas).toBe(1)
    expect(await mounts(preview_app_id)).toMatchObject([
      { path: '/etc/shop.conf', kind: 'file', content_bytes: 18 },
      { path: '/uploads', volume_name: 'pr-12-shop-uploads' },
    ])
    expect(await volumes()).toEqual(['pr-12-shop-uploads', 'uploads'])
    const before = await mounts(preview_app_id)

    // A new commit keeps the data; a file that changed is another.
    const [file] = await mounts(world.app_id)
    await developer().delete(`/api/apps/${world.app_id}/mounts/${file.id}`)
    await developer().post(`/api/apps/${world.app_id}/mounts`, { content: 'none', path: '/etc/shop.conf' })
    const second = world.commit('second')
    await world.pullRequest('synchronize', { sha: second })
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', commit: second })
    const after = await mounts(preview_app_id)
    expect(after[1]).toEqual(before[1])
    expect(after[0]).toMatchObject({ path: '/etc/shop.conf', content_bytes: 4 })

    await world.pullRequest('closed', { sha: second })
    await world.idle()
    expect(await volumes()).toEqual(['uploads'])
    expect(await mounts(world.app_id)).toHaveLength(2)
  })

  it('shows a fork that is approved without secrets no file', async () => {
    const sha = world.commit('first', 'feature', FORK_URL)
    await world.pullRequest('opened', { sha, fork: FORK_URL })
    await developer().post(`${world.path}/12/approve`, { commit: sha })
    await world.idle()
    const { preview_app_id, status } = await world.preview()
    expect(status).toBe('running')
    expect(await mounts(preview_app_id)).toMatchObject([{ path: '/uploads' }])
    const releases = world.api.fakes.engine.calls.filter(
      ({ method, args: [workload] }) =>
        method === 'ensureRelease' && (workload as { owner: { id: string } }).owner.id === preview_app_id,
    )
    expect(releases).not.toEqual([])
    expect(JSON.stringify(releases)).not.toContain('5913 gulls')

    // Nor does a release of it that is made before the job that takes the files of a trusted commit away.
    const preview_app = await get(`/api/apps/${preview_app_id}`)
    await world.api.services.volumes.followMounts(world.app_id, preview_app, { files: true })
    const before = world.api.fakes.engine.calls.length
    await developer().post(`/api/apps/${preview_app_id}/deploy`, { no_cache: true })
    await world.idle()
    const later = world.api.fakes.engine.calls.slice(before)
    expect(later.map(({ method }) => method)).toContain('ensureRelease')
    expect(JSON.stringify(later)).not.toContain('5913 gulls')
  })

  it('takes the file away from a fork that is approved without secrets, although the app has no mount any more', async () => {
    const first = world.commit('first', 'feature', FORK_URL)
    await world.pullRequest('opened', { sha: first, fork: FORK_URL })
    await developer().post(`${world.path}/12/approve`, { commit: first, secrets: true })
    await world.idle()
    const { preview_app_id } = await world.preview()
    expect(await mounts(preview_app_id)).toHaveLength(2)
    for (const { id } of await mounts(world.app_id))
      await developer().delete(`/api/apps/${world.app_id}/mounts/${id}`)
    const second = world.commit('second', 'feature', FORK_URL)
    await world.pullRequest('synchronize', { sha: second, fork: FORK_URL })
    await developer().post(`${world.path}/12/approve`, { commit: second })
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', commit: second })
    expect(await mounts(preview_app_id)).toMatchObject([{ path: '/uploads' }])
  })

  it('has a volume for each of the app, also where their names are cut to the same', async () => {
    const { project_id } = await get(`/api/apps/${world.app_id}`)
    const long = `uploads-${'of-the-customer-portal-'.repeat(2)}`
    for (const [name, path] of [
      [`${long}one`, '/originals'],
      [`${long}two`, '/thumbnails'],
    ]) {
      const made = await developer().post('/api/volumes', { project_id, name })
      expect(made.status).toBe(201)
      const body = { volume_id: made.body.data.id, path, read_only: true }
      expect((await developer().post(`/api/apps/${world.app_id}/mounts`, body)).status).toBe(201)
    }
    await world.pullRequest('opened', { sha: world.commit('first') })
    await world.idle()
    const { preview_app_id, status } = await world.preview()
    expect(status).toBe('running')
    const ids = (await mounts(preview_app_id)).flatMap(({ volume_id }: any) => volume_id ?? [])
    expect(new Set(ids).size).toBe(3)
  })

  it('never takes a volume that is there, and leaves it when it goes', async () => {
    const { project_id } = await get(`/api/apps/${world.app_id}`)
    const name = 'pr-12-shop-uploads'
    const kept = await developer().post('/api/volumes', { project_id, name, access: 'shared' })
    expect(kept.status).toBe(201)
    const sha = world.commit('first')
    await world.pullRequest('opened', { sha })
    await world.idle()
    const { preview_app_id } = await world.preview()
    const [, mount] = await mounts(preview_app_id)
    expect(mount.volume_id).not.toBe(kept.body.data.id)
    expect(mount.volume_name).toMatch(/^pr-12-shop-uploads-[0-9a-f]{8}$/)
    await world.pullRequest('closed', { sha })
    await world.idle()
    expect(await volumes()).toEqual(['pr-12-shop-uploads', 'uploads'])
  })

  it('follows a volume that became a file, and its own volume goes once nothing runs with it', async () => {
    const { project_id } = await get(`/api/apps/${world.app_id}`)
    const made = await developer().post('/api/volumes', { project_id, name: 'conf' })
    const mount = (body: object) => developer().post(`/api/apps/${world.app_id}/mounts`, body)
    await mount({ volume_id: made.body.data.id, path: '/etc/app', read_only: true })
    await world.pullRequest('opened', { sha: world.commit('first') })
    await world.idle()
    expect(await volumes()).toContain('pr-12-shop-conf')
    const { preview_app_id } = await world.preview()
    const old = (await mounts(world.app_id)).find(({ path }: { path: string }) => path === '/etc/app')
    await developer().delete(`/api/apps/${world.app_id}/mounts/${old.id}`)
    expect((await mount({ content: 'port = 80', path: '/etc/app' })).status).toBe(201)
    const preview_app = await get(`/api/apps/${preview_app_id}`)
    await world.api.services.volumes.followMounts(world.app_id, preview_app, { files: true })
    // Its release still runs with the volume.
    await world.api.services.volumes.measure()
    expect(await volumes()).toContain('pr-12-shop-conf')
    await world.pullRequest('synchronize', { sha: world.commit('second') })
    await world.idle()
    expect((await world.preview()).status).toBe('running')
    expect(await mounts(preview_app_id)).toMatchObject([
      { path: '/etc/app', kind: 'file', content_bytes: 9 },
      { path: '/etc/shop.conf' },
      { path: '/uploads' },
    ])
    await world.api.services.volumes.measure()
    expect(await volumes()).toEqual(['conf', 'pr-12-shop-uploads', 'uploads'])
  })
})
