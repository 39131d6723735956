import { describe, expect, it } from 'vitest'
import { commitShop } from '#test/support/shop'
import { useScaledApp } from './app.ts'

const {
  bench: harness,
  call,
  instances,
  running,
  served,
  isHeldAtEdge,
  scaling,
  settled,
  told,
  deployment,
} = useScaledApp()

const asleep = async (body: Record<string, unknown> = {}) => {
  const id = await running(body)
  await call().put(`/api/apps/${id}/scaling`, { replicas: 0 })
  await settled(id)
  expect(await instances(id)).toEqual([])
  return id
}
/** Asks for the app as a browser would. */
async function visit(): Promise<number> {
  const { host, port } = await harness.api.fakes.ingress.listen()
  const [route] = [...harness.api.fakes.ingress.routes.values()]
  const { request } = await import('node:http')
  return new Promise((resolve, reject) =>
    request({ host, port, headers: { host: route!.hostnames[0] } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode!)
    })
      .on('error', reject)
      .end(),
  )
}

describe('an app that was put to sleep', () => {
  it('has no instance, is still called running, and wakes with as many as before for the first request', async () => {
    const id = await asleep({ replicas: 2 })
    expect([served(id), isHeldAtEdge(id)]).toEqual([[], true])
    expect(await scaling(id)).toMatchObject({
      status: 'asleep',
      replicas: 0,
      configured_replicas: 2,
      running: 0,
    })
    expect((await call().get(`/api/apps/${id}`)).body.data.status).toBe('running')
    await harness.api.services.deployments.reconciler.reconcile()
    expect(await instances(id)).toEqual([])
    await harness.api.fakes.ingress.listen()
    expect(await Promise.all(Array.from({ length: 20 }, visit))).toEqual(
      Array.from({ length: 20 }, () => 200),
    )
    await settled(id)
    await expect.poll(async () => (await scaling(id)).status).toBe('steady')
    expect([served(id).length, isHeldAtEdge(id)]).toEqual([2, false])
    expect((await scaling(id)).decisions).toMatchObject([
      { reason: 'request', from: 0, to: 2 },
      { reason: 'manual', from: 2, to: 0 },
    ])
    expect([told('app.asleep').length, told('app.woken').length]).toEqual([1, 1])
    expect(told('app.woken')[0]!.payload).toMatchObject({ to: 2, waited_ms: expect.any(Number) })
  })

  it('is woken by whoever scales it, and runs on the reconciler from then on', async () => {
    const id = await asleep()
    await call().put(`/api/apps/${id}/scaling`, { replicas: 3 })
    await settled(id)
    expect(served(id)).toHaveLength(3)
    expect((await scaling(id)).status).toBe('steady')
  })

  it('keeps nobody waiting when it cannot start, and is then an app that does not run', async () => {
    const id = await asleep()
    harness.api.fakes.engine.behave('*', { start: 'exits', exit_code: 3 })
    expect(await visit()).toBe(503)
    expect(told('app.wake_failed')[0]!.payload.error).toMatch(/exited with code 3/)
    expect(isHeldAtEdge(id)).toBe(false)
    expect((await scaling(id)).status).not.toBe('asleep')
  })

  it('is woken again a moment after it could not start, though the clock was set back meanwhile', async () => {
    const id = await asleep()
    const { clock, engine } = harness.api.fakes
    engine.behave('*', { start: 'exits', exit_code: 3 })
    expect(await visit()).toBe(503)
    const { onWake } = harness.api.services.scaling
    expect(onWake(id)).toBe('refused')
    clock.advance(10_000)
    clock.set('2025-01-01T00:00:00.000Z')
    expect(onWake(id)).toBe('held')
  })

  it('that is stopped is not woken', async () => {
    const id = await asleep()
    await call().post(`/api/apps/${id}/stop`)
    await harness.api.services.jobs.idle()
    expect(await visit()).toBe(503)
    await expect.poll(() => isHeldAtEdge(id)).toBe(false)
    expect([await instances(id), isHeldAtEdge(id), (await scaling(id)).status]).toEqual([
      [],
      false,
      'stopped',
    ])
    await call().post(`/api/apps/${id}/start`)
    await harness.api.services.jobs.idle()
    expect([served(id).length, (await scaling(id)).status]).toEqual([1, 'steady'])
  })

  it('is awake after a deployment', async () => {
    const id = await asleep()
    commitShop(harness.api, 'two')
    await call().post(`/api/apps/${id}/deploy`, {})
    await harness.api.services.jobs.idle()
    expect([served(id).length, (await scaling(id)).status]).toEqual([1, 'steady'])
  })

  it('sleeps on after a deployment that fails before it has traffic', async () => {
    const id = await asleep()
    harness.api.fakes.engine.behave('*', { start: 'exits', exit_code: 3 })
    commitShop(harness.api, 'broken')
    await call().post(`/api/apps/${id}/deploy`, {})
    await harness.api.services.jobs.idle()
    expect([(await deployment(id)).status, (await scaling(id)).status, isHeldAtEdge(id)]).toEqual([
      'failed',
      'asleep',
      true,
    ])
  })

  it('sleeps again after one that does not last, and wakes as the release before', async () => {
    const id = await asleep({ soak_seconds: 5 })
    const before = (await call().get(`/api/apps/${id}`)).body.data.live_deployment_id
    harness.api.fakes.engine.behave('*', { dies_after_ms: 300, exit_code: 3 })
    commitShop(harness.api, 'short-lived')
    await call().post(`/api/apps/${id}/deploy`, {})
    await harness.api.services.jobs.idle()
    expect([(await deployment(id)).status, (await scaling(id)).status]).toEqual(['failed', 'asleep'])
    harness.api.fakes.engine.behave('*', {})
    expect(await visit()).toBe(200)
    expect((await call().get(`/api/apps/${id}`)).body.data).toMatchObject({
      status: 'running',
      live_deployment_id: before,
    })
  })

  it('is woken by another process where one that began to is gone', async () => {
    const id = await asleep()
    harness.api.kernel.db.sql(`UPDATE app_scaling SET state = 'waking' WHERE app_id = ?`).run(id)
    harness.api.services.scaling.start()
    await expect.poll(() => served(id).length).toBe(1)
    await harness.api.services.scaling.stop()
  })

  it('lets its other processes run', async () => {
    const id = await running({ processes: { worker: { command: 'node worker.js', grace_s: 1 } } })
    await call().put(`/api/apps/${id}/scaling`, { replicas: 0 })
    await settled(id)
    expect((await instances(id)).map(({ process }) => process)).toEqual(['worker'])
    await harness.api.services.deployments.reconciler.reconcile()
    expect(isHeldAtEdge(id)).toBe(true)
  })
})

describe('an app that nobody asks for', () => {
  const minute = 60_000
  it('falls asleep after its time, not before, and not while it is used', async () => {
    const id = await running()
    const put = await call().put(`/api/apps/${id}/scaling`, { sleep_after_s: 300 })
    expect(put.body.data).toMatchObject({ sleep_after_s: 300, replicas: 1 })
    const look = async (after_ms: number) => {
      harness.api.fakes.clock.advance(after_ms)
      await harness.api.services.scaling.tick()
      await settled(id)
      return (await scaling(id)).status
    }
    expect(await look(4 * minute)).toBe('steady')
    harness.api.services.traffic.samples.count({
      app_id: id,
      at_ms: harness.api.fakes.clock.now(),
      total_ms: 1,
      status: 200,
      bytes_in: 0,
      bytes_out: 0,
      response_ms: 1,
    } as never)
    expect(await look(10_000)).toBe('steady')
    expect(await look(4 * minute)).toBe('steady')
    const [{ address }] = (await instances(id)) as unknown as [{ address: string }]
    harness.api.fakes.ingress.hold(address, 3000, 1)
    expect(await look(minute)).toBe('steady')
    harness.api.fakes.ingress.hold(address, 3000, 0)
    expect(await look(10_000)).toBe('asleep')
    expect((await scaling(id)).decisions[0]).toMatchObject({
      reason: 'idle',
      metric: 'requests',
      value: 0,
      from: 1,
      to: 0,
      detail: expect.stringMatching(/^No request for \d+ seconds; it sleeps after 300\.$/),
    })
    expect(await visit()).toBe(200)
    expect(await look(4 * minute)).toBe('steady')
    expect(await look(2 * minute)).toBe('asleep')
  })

  it('falls asleep also where it was asked for last while the clock was far ahead', async () => {
    const id = await running()
    await call().put(`/api/apps/${id}/scaling`, { sleep_after_s: 300 })
    const { clock } = harness.api.fakes
    const look = async () => {
      await harness.api.services.scaling.tick()
      await settled(id)
      return (await scaling(id)).status
    }
    const right = clock.iso()
    clock.set('2036-01-01T00:00:00.000Z')
    const request = { app_id: id, at_ms: clock.now(), total_ms: 1, status: 200 }
    harness.api.services.traffic.samples.count({
      ...request,
      ...{ bytes_in: 0, bytes_out: 0, response_ms: 1 },
    } as never)
    clock.advance(10_000)
    expect(await look()).toBe('steady')
    clock.set(right)
    clock.advance(6 * minute)
    expect(await look()).toBe('asleep')
  })

  it('is never put to sleep when it has no web process', async () => {
    const id = await running({
      processes: { web: { replicas: 0 }, bot: { command: 'node bot.js', grace_s: 1 } },
    })
    for (const body of [{ replicas: 0 }, { sleep_after_s: 60 }, { replicas: 2 }])
      expect((await call().put(`/api/apps/${id}/scaling`, body)).status).toBe(409)
  })
})
