import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { networkOf } from '#server/platform/engine/network-name'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
let home: string
let target: string
beforeEach(async () => {
  api = await createTestApi()
  home = api.services.http.default_project()
  target = (await api.as('admin').post('/api/projects', { name: 'Elsewhere' })).body.data.id
})
afterEach(async () => {
  await api.services.deployments.reconciler.stop()
  await api.close()
})

const version = (text: string) => commitShop(api, text)
const post = async (what: string, body?: unknown) => {
  const answer = await api.as('admin').post(`/api/apps/${app_id}/${what}`, body)
  await api.services.jobs.idle()
  return answer
}
const app = async () => (await api.as('admin').get(`/api/apps/${app_id}`)).body.data
const deployments = async () => (await api.as('admin').get(`/api/apps/${app_id}/deployments`)).body.data
const move = () => post('move', { project_id: target })
const calls = (method: string) => api.fakes.engine.calls.filter((call) => call.method === method)
/** Projects whose networks the instances of the app are in. */
const places = async () =>
  (await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })).map(
    ({ project_id }) => project_id,
  )
const servers = () =>
  [...api.fakes.ingress.routes.values()]
    .filter((route) => route.app_id === app_id)
    .flatMap((route) => route.servers.map(({ address }) => address))
const behave = (behaviour: Parameters<typeof api.fakes.engine.behave>[1]) =>
  api.fakes.engine.behave(`app=${app_id}`, behaviour)
const networks = () => calls('ensureRelease').map(({ args }) => (args[0] as { network: string }).network)
async function running(...versions: string[]): Promise<void> {
  for (const [index, text] of versions.entries()) {
    version(text)
    if (index === 0)
      app_id = (
        await api
          .as('admin')
          .post('/api/apps', { name: 'shop', git_url: SHOP_URL, project_id: home, soak_seconds: 0 })
      ).body.data.id
    else await post('deploy')
    await api.services.jobs.idle()
  }
}

describe('an app that is moved to another project', () => {
  it("runs the release that is live on the new project's network, without a clone or a build, and leaves the branch alone", async () => {
    await running('v1')
    version('nobody asked for this')
    const [cloned, built] = [api.fakes.git.calls.length, calls('buildImage').length]
    expect((await move()).status).toBe(200)
    const [latest, first] = await deployments()
    expect(latest).toMatchObject({
      trigger: 'restart',
      status: 'live',
      image: first.image,
      commit: { message: 'v1' },
    })
    expect([await places(), networks().at(-1), await app()]).toMatchObject([
      [target],
      networkOf({ project_id: target }),
      { project_id: target, status: 'running', live_deployment_id: latest.id, auto_deploy: true },
    ])
    expect([api.fakes.git.calls.length, calls('buildImage').length]).toEqual([cloned, built])
  })

  it('stays at what it was rolled back to', async () => {
    await running('v1', 'bad')
    await post('rollback')
    await move()
    const [latest] = await deployments()
    expect(latest).toMatchObject({ trigger: 'restart', status: 'live', commit: { message: 'v1' } })
    expect(await places()).toEqual([target])
  })

  it('can have been uploaded: the archive is not needed', async () => {
    await running('v1')
    api.kernel.db.sql(`UPDATE apps SET source = 'upload', git_url = NULL WHERE id = ?`).run(app_id)
    await move()
    expect((await deployments())[0]).toMatchObject({ trigger: 'restart', status: 'live' })
    expect(await places()).toEqual([target])
  })

  it("leaves the old project's network with the next look at what runs when the restart failed: those that serve do so until others are ready", async () => {
    await running('v1')
    const [before] = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    behave({ start: 'exits' })
    await move()
    expect((await deployments())[0]).toMatchObject({
      trigger: 'restart',
      status: 'failed',
      created_by: expect.any(String),
    })
    expect([await places(), servers()]).toEqual([[home], [before!.address]])
    behave({ start: 'never_listens' })
    await api.services.deployments.reconciler.reconcile()
    await expect.poll(places).toEqual(expect.arrayContaining([home, target]))
    expect([servers(), (await fetch(`http://${before!.address}:3000/`)).status]).toEqual([
      [before!.address],
      200,
    ])
    const made = (await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })).find(
      ({ project_id }) => project_id === target,
    )
    api.fakes.engine.crash(made!.id)
    await api.services.jobs.idle()
    expect([await places(), servers()]).toEqual([[home], [before!.address]])
  })

  it('is restarted by the platform once, which nobody asked for and everybody can see', async () => {
    await running('v1')
    behave({ start: 'exits' })
    await move()
    behave({})
    await api.services.deployments.reconciler.reconcile()
    await api.services.jobs.idle()
    const [instance, ...others] = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    expect((await deployments())[0]).toMatchObject({
      trigger: 'restart',
      status: 'live',
      created_by: null,
      commit: { message: 'v1' },
    })
    expect([instance!.project_id, others, networks().at(-1), servers(), (await app()).status]).toEqual([
      target,
      [],
      networkOf({ project_id: target }),
      [instance!.address],
      'running',
    ])
  })

  it("leaves the old project's network in any case: what twice could not be started beside what serves is made anew in its place", async () => {
    await running('v1')
    behave({ start: 'exits' })
    await move()
    await api.services.deployments.reconciler.reconcile()
    await api.services.jobs.idle()
    expect((await deployments()).map(({ status }: { status: string }) => status)).toEqual([
      'failed',
      'failed',
      'live',
    ])
    expect(await places()).toEqual([home])
    behave({})
    await api.services.deployments.reconciler.reconcile()
    const [instance] = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    expect([await places(), networks().at(-1), (await app()).status, servers()]).toEqual([
      [target],
      networkOf({ project_id: target }),
      'running',
      [instance!.address],
    ])
    expect(await deployments()).toHaveLength(3)
  })

  it('is started there when it was stopped, and not before', async () => {
    await running('v1')
    await post('stop')
    await move()
    expect([await places(), (await deployments()).length]).toEqual([[], 1])
    await post('start')
    expect([await places(), (await app()).status]).toEqual([[target], 'running'])
  })

  it('has nothing to restart when it was never live', async () => {
    api.fakes.git.commit(SHOP_URL, 'main', { 'package.json': '{' }, 'broken')
    app_id = (
      await api
        .as('admin')
        .post('/api/apps', { name: 'shop', git_url: SHOP_URL, project_id: home, soak_seconds: 0 })
    ).body.data.id
    await api.services.jobs.idle()
    expect((await move()).status).toBe(200)
    expect(await deployments()).toHaveLength(1)
    version('v1')
    await post('deploy')
    expect(await places()).toEqual([target])
  })

  it('is refused while it is started, stopped or deployed', async () => {
    await running('v1')
    await post('stop')
    await api.services.jobs.stop()
    await api.as('admin').post(`/api/apps/${app_id}/start`)
    const { status, body } = await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: target })
    expect([status, body.error.message]).toEqual([
      409,
      'Cannot move an app while it is deployed, started or stopped. Wait for it, or cancel the deployment.',
    ])
    api.services.jobs.start()
    await api.services.jobs.idle()
  })

  it('is found in the audit trails of both projects', async () => {
    await running('v1')
    await move()
    for (const project of [home, target]) {
      const { body } = await api.as('admin').get(`/api/projects/${project}/audit-logs?action=app.move`)
      expect(body.data).toMatchObject([
        {
          action: 'app.move',
          project_id: project,
          resource: { type: 'app', id: app_id },
          before: { project_id: home },
          after: { project_id: target },
        },
      ])
    }
  })
})
