import { describe, expect, it } from 'vitest'
import { commitShop } from '#test/support/shop'
import { useScaledApp } from './app.ts'

const {
  bench: harness,
  call,
  instances,
  running,
  served,
  scaling,
  settled,
  told,
  deployment,
} = useScaledApp()
const MIB = 1024 * 1024

describe('more and fewer instances', () => {
  it('come and go without a deployment; the answer says what there is', async () => {
    const id = await running()
    const before = await deployment(id)
    const [first] = await instances(id)
    const asked = await call().put(`/api/apps/${id}/scaling`, { replicas: 4 })
    expect([asked.status, asked.body.data.replicas, asked.body.data.status]).toEqual([200, 4, 'scaling'])
    await settled(id)
    const now = await instances(id)
    expect([now.length, now[0]!.id]).toEqual([4, first!.id])
    expect(served(id).sort()).toEqual(now.map(({ address }) => address).sort())
    expect(await scaling(id)).toMatchObject({
      status: 'steady',
      replicas: 4,
      configured_replicas: 4,
      running: 4,
      auto: null,
      sleep_after_s: null,
      instances: now.map((one) => ({ id: one.id, receives_requests: true, process: 'web' })),
      decisions: [{ reason: 'manual', from: 1, to: 4, outcome: 'applied' }],
    })
    const app = (await call().get(`/api/apps/${id}`)).body.data
    expect([app.replicas, app.needs_redeploy, app.changed_keys]).toEqual([4, false, []])
    expect((await deployment(id)).id).toBe(before.id)
    expect(told('app.scaled').map(({ payload }) => payload)).toMatchObject([
      { from: 1, to: 4, reason: 'manual' },
    ])
    const { body } = await harness.api.as('owner').get(`/api/projects/${app.project_id}/audit-logs`)
    expect(body.data[0]).toMatchObject({ action: 'app.scale', resource: { type: 'app', id } })
  })

  it('that are still on their way when the server stops are left to its next start', async () => {
    const id = await running({ replicas: 2 })
    const [, going] = await instances(id)
    harness.api.fakes.ingress.hold(going!.address!, 3000, 1)
    await call().put(`/api/apps/${id}/scaling`, { replicas: 1 })
    await expect.poll(() => served(id)).toHaveLength(1)
    const { sizes } = harness.api.services.deployments
    expect(sizes.isWorking(id)).toBe(true)
    await harness.api.services.stop()
    expect(sizes.isWorking(id)).toBe(false)
    // Nothing begins any more, whoever asks for it.
    await sizes.settle(id)
    expect([sizes.isWorking(id), (await instances(id)).length]).toEqual([false, 2])
  })

  it('that go have no traffic and no request any more before they end', async () => {
    const id = await running({ replicas: 3 })
    const [kept, ...going] = await instances(id)
    harness.api.fakes.ingress.hold(going[1]!.address!, 3000, 1)
    await call().put(`/api/apps/${id}/scaling`, { replicas: 1 })
    await expect.poll(() => served(id)).toEqual([kept!.address])
    expect(await instances(id)).toHaveLength(3)
    // Meanwhile what keeps apps running leaves it alone.
    await harness.api.services.deployments.reconciler.reconcile()
    expect([served(id), (await instances(id)).length]).toEqual([[kept!.address], 3])
    harness.api.fakes.ingress.hold(going[1]!.address!, 3000, 0)
    await settled(id)
    expect((await instances(id)).map((one) => one.id)).toEqual([kept!.id])
  })

  it('turn to what was asked for last while one change is under way', async () => {
    const id = await running({ replicas: 3 })
    const all = await instances(id)
    for (const { address } of all.slice(1)) harness.api.fakes.ingress.hold(address!, 3000, 1)
    await call().put(`/api/apps/${id}/scaling`, { replicas: 1 })
    await expect.poll(() => served(id)).toEqual([all[0]!.address])
    await call().put(`/api/apps/${id}/scaling`, { replicas: 2 })
    await expect.poll(() => served(id)).toHaveLength(2)
    harness.api.fakes.ingress.hold(all[2]!.address!, 3000, 0)
    await settled(id)
    expect((await instances(id)).map((one) => one.id)).toEqual(all.slice(0, 2).map((one) => one.id))
  })

  it('get requests only once they are ready; one that ends instead is told, and the others serve on', async () => {
    const id = await running()
    const [first] = await instances(id)
    harness.api.fakes.engine.behave('*', { start: 'exits', exit_code: 3 })
    await call().put(`/api/apps/${id}/scaling`, { replicas: 2 })
    await expect.poll(() => told('app.scaling_failed').length, { timeout: 60_000 }).toBe(1)
    expect(told('app.scaling_failed')[0]!.payload.error).toMatch(/exited with code 3 before it was ready/)
    expect(served(id)).toContain(first!.address)
  })

  it('last over restarts, rollbacks and the next deployment', async () => {
    const id = await running()
    await call().put(`/api/apps/${id}/scaling`, { replicas: 3 })
    await settled(id)
    for (const step of ['restart', 'deploy', 'rollback']) {
      if (step === 'deploy') commitShop(harness.api, 'two')
      expect((await call().post(`/api/apps/${id}/${step}`, {})).status).toBeLessThan(300)
      await harness.api.services.jobs.idle()
      expect([step, (await instances(id)).length, (await scaling(id)).replicas]).toEqual([step, 3, 3])
    }
  })

  it('are restored to that number after one vanished', async () => {
    const id = await running()
    await call().put(`/api/apps/${id}/scaling`, { replicas: 2 })
    await settled(id)
    const [one] = await instances(id)
    await harness.api.fakes.engine.removeRelease(one!.release_id, 0)
    await harness.api.services.deployments.reconciler.reconcile()
    expect(await instances(id)).toHaveLength(2)
  })

  it('of other processes are scaled by their name, and web is not touched', async () => {
    const id = await running({ processes: { worker: { command: 'node worker.js', grace_s: 1 } } })
    const answer = await call().put(`/api/apps/${id}/scaling`, { processes: { worker: { replicas: 3 } } })
    expect(answer.status).toBe(200)
    await settled(id)
    const found = await instances(id)
    expect(found.map(({ process }) => process).sort()).toEqual(['web', 'worker', 'worker', 'worker'])
    expect(await scaling(id)).toMatchObject({
      replicas: 1,
      processes: { worker: { replicas: 3, running: 3 } },
    })
    expect((await call().get(`/api/apps/${id}`)).body.data.needs_redeploy).toBe(false)
    const wrong = await call().put(`/api/apps/${id}/scaling`, { processes: { mailer: { replicas: 1 } } })
    expect([wrong.status, wrong.body.error.message]).toEqual([
      422,
      'processes.mailer: is not a process of this app. Deploy it first.',
    ])
  })
})

describe('limits and reservations', () => {
  it('hold at once, in place, and are shown as the engine enforces them', async () => {
    const id = await running()
    const [before] = await instances(id)
    const limits = { cpus: 0.5, memory_bytes: 256 * MIB }
    const answer = await call().put(`/api/apps/${id}/scaling`, {
      limits,
      reservations: { memory_bytes: 64 * MIB },
    })
    expect(answer.body.data).toMatchObject({ limits, reservations: { cpus: null, memory_bytes: 64 * MIB } })
    await settled(id)
    const shown = await scaling(id)
    expect(shown.instances).toMatchObject([{ id: before!.id, limits }])
    const app = (await call().get(`/api/apps/${id}`)).body.data
    expect([app.limits, app.needs_redeploy]).toEqual([limits, false])
    const cleared = await call().put(`/api/apps/${id}/scaling`, { reservations: { memory_bytes: null } })
    expect(cleared.body.data.reservations).toEqual({ cpus: null, memory_bytes: null })
  })

  it('that contradict one another or are more than the server has are refused', async () => {
    const id = await running()
    const put = (body: object) => call().put(`/api/apps/${id}/scaling`, body)
    const more = await put({ limits: { memory_bytes: 64 * MIB }, reservations: { memory_bytes: 128 * MIB } })
    expect([more.status, more.body.error.details[0].path]).toEqual([422, 'reservations.memory_bytes'])
    const huge = await put({ limits: { cpus: 100 }, reservations: { cpus: 100 } })
    expect([huge.status, huge.body.error.code]).toEqual([409, 'CONFLICT'])
    for (const body of [
      { replicas: -1 },
      { replicas: 101 },
      { replicas: 1.5 },
      { sleep_after_s: 1 },
      { x: 1 },
    ])
      expect((await put(body)).status).toBe(422)
    expect((await scaling(id)).decisions).toEqual([])
  })

  it('and replicas stay within the quotas of the project', async () => {
    const id = await running({ limits: { memory_bytes: 256 * MIB } })
    const project_id = (await call().get(`/api/apps/${id}`)).body.data.project_id
    await harness.api.as('admin').put(`/api/projects/${project_id}`, { quotas: { memory_bytes: 1024 * MIB } })
    expect((await call().put(`/api/apps/${id}/scaling`, { replicas: 4 })).status).toBe(200)
    const over = await call().put(`/api/apps/${id}/scaling`, { replicas: 5 })
    expect([over.status, over.body.error.message]).toEqual([
      409,
      expect.stringContaining('quota memory_bytes'),
    ])
    // Scaling down gives room back at once.
    expect((await call().put(`/api/apps/${id}/scaling`, { replicas: 1 })).status).toBe(200)
    expect((await call().put(`/api/apps/${id}/scaling`, { replicas: 3 })).status).toBe(200)
  })
})

it('an app that does not run takes the change along to its next start', async () => {
  const id = await running()
  await call().post(`/api/apps/${id}/stop`)
  await harness.api.services.jobs.idle()
  expect((await call().put(`/api/apps/${id}/scaling`, { replicas: 0 })).status).toBe(409)
  const asked = await call().put(`/api/apps/${id}/scaling`, { replicas: 2 })
  expect([asked.status, asked.body.data.status, asked.body.data.replicas]).toEqual([200, 'stopped', 2])
  expect(await instances(id)).toEqual([])
  await call().post(`/api/apps/${id}/start`)
  await harness.api.services.jobs.idle()
  expect(await instances(id)).toHaveLength(2)
})
