import { expect, it } from 'vitest'
import { useScaledApp } from './app.ts'

const { bench: harness, call, instances, running, scaling, settled, told } = useScaledApp()
const RULE = {
  metric: 'requests_per_second',
  target: 10,
  min: 1,
  max: 5,
  scale_up_cooldown_s: 10,
  scale_down_cooldown_s: 60,
}
/** Lets ten seconds pass with so many requests, and the rule look at them. */
async function period(id: string, requests: number): Promise<number> {
  const { clock } = harness.api.fakes
  clock.advance(10_000 - (clock.now() % 10_000) + 3_000)
  const now = clock.now()
  // The requests of the period that is complete.
  harness.api.fakes.clock.set(new Date(now - 4_000).toISOString())
  for (let sent = 0; sent < requests; sent++)
    harness.api.services.traffic.samples.count({
      app_id: id,
      at_ms: now - 9_000,
      total_ms: 5,
      status: 200,
      bytes_in: 0,
      bytes_out: 0,
      response_ms: 5,
    } as never)
  harness.api.fakes.clock.set(new Date(now).toISOString())
  await harness.api.services.scaling.tick()
  await settled(id)
  return (await instances(id)).length
}

it('a rule follows the load up within two periods and down after its cool-down, and tells why', async () => {
  const id = await running()
  const set = await call().put(`/api/apps/${id}/scaling/auto`, RULE)
  expect([set.status, set.body.data.auto]).toEqual([200, RULE])
  expect([await period(id, 420), await period(id, 420)]).toEqual([1, 5])
  expect((await scaling(id)).decisions).toMatchObject([
    {
      reason: 'rule',
      metric: 'requests_per_second',
      value: 42,
      target: 10,
      from: 1,
      to: 5,
      outcome: 'applied',
      detail:
        '1 instance had 42 requests per second per instance; the target is 10 requests per second: 1 to 5.',
    },
  ])
  expect(told('app.scaled').at(-1)!.payload).toMatchObject({ reason: 'rule', value: 42, from: 1, to: 5 })
  const app = (await call().get(`/api/apps/${id}`)).body.data
  expect([app.replicas, app.needs_redeploy]).toEqual([1, false])
  const { body } = await harness.api.as('owner').get(`/api/projects/${app.project_id}/audit-logs`)
  expect(body.data[0]).toMatchObject({ action: 'app.scale', after: { replicas: 5, value: 42 } })
  const counts: number[] = []
  for (let index = 0; index < 9; index++) counts.push(await period(id, 80))
  expect(counts[3]).toBe(5)
  expect(counts.at(-1)).toBe(1)
  // What a rule made of it stays when the rule goes.
  await period(id, 250)
  expect(await period(id, 250)).toBe(3)
  const removed = await call().delete(`/api/apps/${id}/scaling/auto`)
  expect([removed.status, removed.body.data]).toEqual([200, { id, deleted: true }])
  expect(await scaling(id)).toMatchObject({ auto: null, replicas: 3, configured_replicas: 3 })
  expect((await call().delete(`/api/apps/${id}/scaling/auto`)).status).toBe(404)
  expect(await period(id, 900)).toBe(3)
})

it('a rule stays within the quotas of its project, and says so once', async () => {
  const id = await running({ limits: { memory_bytes: 256 * 1024 ** 2 } })
  const project_id = (await call().get(`/api/apps/${id}`)).body.data.project_id
  await call().put(`/api/apps/${id}/scaling/auto`, RULE)
  await harness.api
    .as('admin')
    .put(`/api/projects/${project_id}`, { quotas: { memory_bytes: 512 * 1024 ** 2 } })
  await period(id, 420)
  await period(id, 420)
  expect(await period(id, 420)).toBe(1)
  const refused = (await scaling(id)).decisions.filter(
    (one: { outcome: string }) => one.outcome === 'refused',
  )
  expect(refused).toMatchObject([{ from: 1, to: 5, detail: expect.stringContaining('quota memory_bytes') }])
  expect(told('app.scaling_refused')).toHaveLength(1)
})

it('a rule holds over a deployment, which brings as many instances as it decided on', async () => {
  const id = await running()
  await call().put(`/api/apps/${id}/scaling/auto`, RULE)
  await period(id, 300)
  expect(await period(id, 300)).toBe(3)
  await call().post(`/api/apps/${id}/deploy`, { no_cache: true })
  await harness.api.services.jobs.idle()
  expect((await instances(id)).length).toBe(3)
  expect((await call().put(`/api/apps/${id}/scaling`, { replicas: 7 })).status).toBe(422)
  expect((await call().put(`/api/apps/${id}/scaling`, { replicas: 4 })).status).toBe(200)
  await settled(id)
  expect(await scaling(id)).toMatchObject({ replicas: 4, running: 4 })
})

it('with min 0 an app without requests falls asleep after the cool-down', async () => {
  const id = await running()
  await call().put(`/api/apps/${id}/scaling/auto`, { ...RULE, min: 0 })
  const counts: number[] = []
  for (let index = 0; index < 9; index++) counts.push(await period(id, 0))
  expect([counts[0], counts.at(-1)]).toEqual([1, 0])
  expect((await scaling(id)).status).toBe('asleep')
})

it('rules that make no sense are refused with their field', async () => {
  const id = await running()
  const put = async (body: object) => {
    const answer = await call().put(`/api/apps/${id}/scaling/auto`, { ...RULE, ...body })
    return [answer.status, answer.body.error.details?.[0]?.path]
  }
  expect(await put({ metric: 'rain' })).toEqual([422, 'metric'])
  expect(await put({ min: 6 })).toEqual([422, 'max'])
  expect(await put({ metric: 'cpu', target: 150 })).toEqual([422, 'target'])
  expect(await put({ max: 101 })).toEqual([422, 'max'])
  expect(await put({ target: 0 })).toEqual([422, 'target'])
  expect(await put({ scale_down_cooldown_s: 1 })).toEqual([422, 'scale_down_cooldown_s'])
})
