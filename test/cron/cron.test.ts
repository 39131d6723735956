import { Cron } from 'croner'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { RunOnceSpec } from '#server/platform/engine/engine'
import { createTestApi, type TestApi } from '#test/support/api'
import { SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
  api.fakes.clock.set('2026-03-01T11:59:00.000Z')
})
afterEach(() => api.close())
const developer = () => api.as('developer')

async function deployed(files: Record<string, string> = {}, name = 'shop'): Promise<string> {
  commit(files)
  const { body } = await developer().post('/api/apps', { name, git_url: SHOP_URL, soak_seconds: 0 })
  app_id = body.data.id
  await api.services.jobs.idle()
  return app_id
}
const commit = (files: Record<string, string>) =>
  api.fakes.git.commit(SHOP_URL, 'main', {
    'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
    'server.js': '//',
    ...files,
  })
const add = (body: object) =>
  developer().post('/api/cron-jobs', { app_id, expression: '0 * * * *', command: 'clean', ...body })
const added = async (body: object = {}): Promise<string> => {
  const answer = await add(body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data.id
}
const job = async (id: string) =>
  (await developer().get('/api/cron-jobs?per_page=100')).body.data.find(
    (one: { id: string }) => one.id === id,
  )
const runs = async (id: string) => (await api.as('viewer').get(`/api/cron-jobs/${id}/runs`)).body.data
const states = async (id: string) => (await runs(id)).map(({ status }: { status: string }) => status)
/** Sets the clock, begins what is due, and waits for its end. */
const at = async (iso: string) => {
  api.fakes.clock.set(iso)
  const count = await api.services.cron.tick()
  await api.services.jobs.idle()
  return count
}
type Outcome = { exit_code?: number; lines?: string[]; hang?: boolean; timed_out?: boolean }
const behave = (run: (spec: RunOnceSpec) => Outcome) => api.fakes.engine.behave(() => true, { run })
const commands = () =>
  api.fakes.engine.calls
    .filter(({ method }) => method === 'runOnce')
    .map(({ args }) => args[0] as RunOnceSpec)

describe('a cron job', () => {
  it('runs when it is due, in the image and environment of what is live, and keeps what it printed', async () => {
    await deployed()
    await developer().post(`/api/apps/${app_id}/env`, { key: 'A_TOKEN', value: 'a value of nobody else' })
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await api.services.jobs.idle()
    behave(() => ({ exit_code: 0, lines: ['swept', 'with a value of nobody else'] }))
    const id = await added({ command: ['node', 'clean.js'], timezone: 'Europe/Berlin', name: 'Clean' })
    expect(await job(id)).toMatchObject({
      next_run_at: '2026-03-01T12:00:00.000Z',
      last_run: null,
      timezone: 'Europe/Berlin',
    })
    expect([await at('2026-03-01T11:59:59.000Z'), await at('2026-03-01T12:00:00.400Z')]).toEqual([0, 1])
    expect(await runs(id)).toMatchObject([
      {
        id: expect.stringMatching(/^run_/),
        slot: '2026-03-01T12:00:00.000Z',
        trigger: 'schedule',
        status: 'succeeded',
        attempts: 1,
        exit_code: 0,
        output: 'swept\nwith [redacted]\n',
        error: null,
      },
    ])
    expect(commands().at(-1)).toMatchObject({
      command: ['node', 'clean.js'],
      environment: { A_TOKEN: 'a value of nobody else' },
      timeout_ms: 600_000,
    })
    expect(await job(id)).toMatchObject({
      next_run_at: '2026-03-01T13:00:00.000Z',
      last_run: { status: 'succeeded' },
    })
    expect(api.events().filter(({ type }) => type === 'cron.succeeded')).toHaveLength(1)
  })
  it('F18: tells how long it ran when the clock is set back meanwhile', async () => {
    await deployed()
    const id = await added()
    behave(() => {
      api.fakes.clock.advance(5000)
      api.fakes.clock.set('2026-03-01T10:00:00.000Z')
      return { exit_code: 0 }
    })
    await at('2026-03-01T12:00:00.000Z')
    expect(await runs(id)).toMatchObject([{ status: 'succeeded', duration_ms: 5000 }])
  })
  it('tells how it failed, ran too long, or could not run at all', async () => {
    await deployed()
    const id = await added()
    behave(() => ({ exit_code: 3, lines: ['oh'] }))
    await at('2026-03-01T12:00:00.000Z')
    behave(() => ({ timed_out: true, exit_code: 137 }))
    await at('2026-03-01T13:00:00.000Z')
    api.fakes.engine.setUnavailable(true)
    await at('2026-03-01T14:00:00.000Z')
    expect(await runs(id)).toMatchObject([
      { status: 'failed', error: expect.stringContaining('does not answer') },
      { status: 'timed_out', error: 'The command was ended after 600 seconds.', exit_code: null },
      { status: 'failed', error: 'The command exited with code 3.', exit_code: 3, output: 'oh\n' },
    ])
  })
  it('F40: runs while the container of its app is missing; without its image it fails with a sentence, until that is there again', async () => {
    await deployed()
    const id = await added()
    const { engine } = api.fakes
    for (const one of await engine.instances({ owner: { kind: 'app', id: app_id } }))
      await engine.vanish(one.id)
    await at('2026-03-01T12:00:00.000Z')
    for (const image of await engine.listImages({})) await engine.removeImage(image.id)
    await at('2026-03-01T13:00:00.000Z')
    expect(await runs(id)).toMatchObject([
      { status: 'failed', exit_code: null, error: expect.stringMatching(/^[A-Z].{10,}\.$/) },
      { status: 'succeeded', exit_code: 0, error: null },
    ])
    commit({})
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await api.services.jobs.idle()
    await at('2026-03-01T14:00:00.000Z')
    expect(await states(id)).toEqual(['succeeded', 'failed', 'succeeded'])
  })
  it('is tried again as often as it says, and succeeds with the first attempt that does', async () => {
    await deployed()
    const id = await added({ retries: 3, retry_delay_s: 0 })
    let count = 0
    behave(() => ({ exit_code: (count += 1) < 3 ? 1 : 0 }))
    await at('2026-03-01T12:00:00.000Z')
    expect(await runs(id)).toMatchObject([{ status: 'succeeded', attempts: 3, exit_code: 0, error: null }])
  })
  it('holds nobody up while it waits to be tried again', async () => {
    await deployed()
    const failing = await added({ overlap: 'allow', retries: 10, retry_delay_s: 3600, name: 'failing' })
    const other = await added({ name: 'other', command: 'other' })
    behave((spec) => ({ exit_code: spec.shell_command === 'other' ? 0 : 1 }))
    for (let n = 0; n < 9; n += 1) await developer().post(`/api/cron-jobs/${failing}/run`)
    await developer().post(`/api/cron-jobs/${other}/run`)
    await expect.poll(() => states(other), { interval: 5 }).toEqual(['succeeded'])
    expect(await states(failing)).toEqual(Array(9).fill('running'))
  })
  it('counts toward the quotas of its project: it waits for other commands, and runs alone where apps fill them', async () => {
    await deployed()
    const project_id = (await developer().get(`/api/apps/${app_id}`)).body.data.project_id
    const memory_bytes = api.services.projects.share(project_id).memory_bytes * 2
    const limit = (quotas: object) => api.as('admin').put(`/api/projects/${project_id}`, { quotas })
    await limit({ memory_bytes })
    const long = await added({ command: 'long', name: 'long' })
    const short = await added({ command: 'short', name: 'short' })
    behave((spec) => ({ hang: spec.shell_command === 'long' }))
    await developer().post(`/api/cron-jobs/${long}/run`)
    await expect.poll(() => commands().length, { interval: 5 }).toBe(1)
    await developer().post(`/api/cron-jobs/${short}/run`)
    const error = expect.stringContaining('begins once enough of them have ended.')
    await expect
      .poll(() => runs(short), { interval: 5 })
      .toMatchObject([{ status: 'queued', error, attempts: 0 }])
    await developer().delete(`/api/cron-jobs/${long}`)
    await api.services.jobs.stop()
    // It looks again at once, as after a restart.
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(await runs(short)).toMatchObject([{ status: 'succeeded', error: null, attempts: 1 }])
    await limit({ memory_bytes: memory_bytes / 2 })
    await at('2026-03-01T12:00:00.000Z')
    expect((await runs(short))[0]).toMatchObject({ status: 'succeeded', error: null })
  })
  it('keeps the last 64 KiB of a long output', async () => {
    await deployed()
    const id = await added()
    behave(() => ({ exit_code: 0, lines: Array.from({ length: 3000 }, (_, i) => `${i} ${'x'.repeat(40)}`) }))
    await at('2026-03-01T12:00:00.000Z')
    const [run] = await runs(id)
    expect(run.truncated).toBe(true)
    expect(run.output.length).toBeLessThanOrEqual(65_536)
    expect(run.output.endsWith(`2999 ${'x'.repeat(40)}\n`)).toBe(true)
  })
  it('that is paused, or of an app that was stopped, does not run, and makes up for nothing', async () => {
    await deployed()
    const id = await added({ catch_up: 'once' })
    await developer().put(`/api/cron-jobs/${id}`, { enabled: false })
    expect((await job(id)).next_run_at).toBeNull()
    expect(await at('2026-03-01T12:00:00.000Z')).toBe(0)
    await developer().put(`/api/cron-jobs/${id}`, { enabled: true })
    expect((await job(id)).next_run_at).toBe('2026-03-01T13:00:00.000Z')
    await developer().post(`/api/apps/${app_id}/stop`)
    await api.services.jobs.idle()
    await at('2026-03-01T15:00:00.000Z')
    expect([await runs(id), (await job(id)).next_run_at]).toEqual([[], '2026-03-01T16:00:00.000Z'])
    // On time, and not as one that was missed.
    await at('2026-03-01T16:00:00.000Z')
    expect([await runs(id), (await job(id)).next_run_at]).toEqual([[], '2026-03-01T17:00:00.000Z'])
    expect((await developer().post(`/api/cron-jobs/${id}/run`)).status).toBe(409)
  })
  it('goes with its app to another project, and away with it', async () => {
    await deployed()
    await added()
    await at('2026-03-01T12:00:00.000Z')
    const other = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id
    expect((await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: other })).status).toBe(200)
    await api.services.jobs.idle()
    expect((await developer().get('/api/cron-jobs')).body.total).toBe(0)
    expect((await api.as('admin').get(`/api/cron-jobs?app_id=${app_id}`)).body.data).toMatchObject([
      { project_id: other },
    ])
    await api.as('admin').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    expect(
      api.kernel.db
        .sql('SELECT (SELECT count(*) FROM cron_jobs) + (SELECT count(*) FROM cron_runs)')
        .pluck()
        .get(),
    ).toBe(0)
  })
})

describe('a run that is still going on when the next is due', () => {
  const overlapping = async (overlap: string) => {
    await deployed()
    const id = await added({ overlap })
    let first = true
    behave(() => {
      const hang = first
      first = false
      return hang ? { hang: true, lines: ['half of it'] } : { exit_code: 0 }
    })
    api.fakes.clock.set('2026-03-01T12:00:00.000Z')
    await api.services.cron.tick()
    await expect.poll(() => states(id)).toEqual(['running'])
    api.fakes.clock.set('2026-03-01T13:00:00.000Z')
    await api.services.cron.tick()
    return id
  }
  it('is left alone, and the next is skipped, when overlap is forbidden; by hand it is a 409', async () => {
    const id = await overlapping('forbid')
    expect(await states(id)).toEqual(['skipped', 'running'])
    expect((await developer().post(`/api/cron-jobs/${id}/run`)).status).toBe(409)
    await developer().delete(`/api/cron-jobs/${id}`)
    await api.services.jobs.idle()
  })
  it('has the next beside it when overlap is allowed', async () => {
    const id = await overlapping('allow')
    await expect.poll(() => states(id)).toEqual(['succeeded', 'running'])
    await developer().delete(`/api/cron-jobs/${id}`)
    await api.services.jobs.idle()
  })
  it('ends for the next when it is replaced', async () => {
    const id = await overlapping('replace')
    await expect.poll(() => states(id)).toEqual(['succeeded', 'cancelled'])
    await api.services.jobs.idle()
    // What it printed until then tells how far it came.
    expect((await runs(id))[1]).toMatchObject({ status: 'cancelled', output: 'half of it\n' })
  })
})

describe('F40, F18: times that pass unseen', () => {
  it('while Portreeve is down are told once, and not made up for unless the job says so', async () => {
    await deployed()
    const none = await added()
    const once = await added({ catch_up: 'once' })
    await at('2026-03-01T15:10:00.000Z')
    expect(await runs(none)).toMatchObject([
      {
        status: 'missed',
        slot: '2026-03-01T15:00:00.000Z',
        error: 'Portreeve was not running at 4 times, from 2026-03-01T12:00:00.000Z on.',
      },
    ])
    expect(await runs(once)).toMatchObject([
      { status: 'succeeded', slot: '2026-03-01T15:00:00.000Z', trigger: 'catch_up' },
    ])
    expect(
      api
        .events()
        .filter(({ type }) => type === 'cron.missed')
        .map(({ payload }) => [payload.cron_job_id, payload.count]),
    ).toEqual([
      [none, 4],
      [once, 4],
    ])
    await at('2026-03-01T16:00:00.000Z')
    expect([await states(none), await states(once)]).toEqual([
      ['succeeded', 'missed'],
      ['succeeded', 'succeeded'],
    ])
  })
  it('for a month are not counted one by one, and made up for at the newest of them', async () => {
    await deployed()
    const id = await added({ expression: '* * * * *', catch_up: 'once' })
    await at('2026-04-01T12:00:30.000Z')
    expect(await runs(id)).toMatchObject([{ trigger: 'catch_up', slot: '2026-04-01T12:00:00.000Z' }])
    const missed = api.events().find(({ type }) => type === 'cron.missed')
    expect(missed?.payload.error).toBe(
      'Portreeve was not running at 100 times or more, from 2026-03-01T12:00:00.000Z on.',
    )
  })
  it('because the clock was set run at most once: back, far ahead and back again', async () => {
    await deployed()
    const id = await added()
    await at('2026-03-01T12:00:00.000Z')
    for (const iso of ['2026-02-28T12:00:00.000Z', '2026-03-01T11:59:30.000Z', '2026-03-01T12:00:30.000Z'])
      await at(iso)
    const of_noon = (await runs(id)).filter(
      ({ slot }: { slot: string }) => slot === '2026-03-01T12:00:00.000Z',
    )
    expect(of_noon).toMatchObject([{ status: 'succeeded' }])
    // Set right by less than a minute it is the same clock.
    await at('2026-03-01T12:00:00.000Z')
    expect((await job(id)).next_run_at).toBe('2026-03-01T13:00:00.000Z')
  })
  it('go on at once when a clock that was far ahead is right again, and with a start', async () => {
    await deployed()
    const id = await added()
    await at('2036-03-01T12:00:30.000Z')
    expect((await job(id)).next_run_at).toBe('2036-03-01T13:00:00.000Z')
    await at('2026-03-01T13:00:00.000Z')
    expect((await job(id)).next_run_at).toBe('2026-03-01T14:00:00.000Z')
    api.kernel.db.sql(`UPDATE cron_jobs SET next_run_at = '2036-03-01T13:00:00.000Z'`).run()
    api.services.cron.start()
    // However many jobs there are: they are worked out while others are served.
    expect(api.kernel.db.raw.prepare('SELECT next_run_at FROM cron_jobs').pluck().get()).toMatch(/^2036/)
    await api.services.cron.tick()
    expect((await job(id)).next_run_at).toBe('2026-03-01T14:00:00.000Z')
    await api.services.cron.stop()
    await at('2026-03-01T14:00:00.000Z')
    expect(await states(id)).toEqual(['succeeded', 'missed'])
  })
  it('whose times have passed, back and again, are made up for once: no other job waits for that', async () => {
    await deployed()
    const id = await added({ catch_up: 'once' })
    const other = await added()
    await at('2026-03-01T12:00:00.000Z')
    await at('2026-03-01T13:00:00.000Z')
    await at('2026-03-01T09:30:00.000Z')
    await at('2026-03-01T13:30:00.000Z')
    await at('2026-03-01T14:00:00.000Z')
    const ran = async (of: string) =>
      (await runs(of))
        .flatMap(({ slot, status }: any) => (status === 'succeeded' ? slot.slice(11, 13) : []))
        .sort()
    expect([await ran(id), await ran(other)]).toEqual([
      ['12', '13', '14'],
      ['12', '13', '14'],
    ])
  })
  it('a command that a restart of Portreeve interrupted is a failed attempt, and is not begun again', async () => {
    await deployed()
    const id = await added()
    behave(() => ({ hang: true }))
    api.fakes.clock.set('2026-03-01T12:00:00.000Z')
    await api.services.cron.tick()
    await expect.poll(() => states(id)).toEqual(['running'])
    await api.services.jobs.stop()
    expect(await states(id)).toEqual(['running'])
    const before = commands().length
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(await runs(id)).toMatchObject([
      { status: 'failed', error: expect.stringContaining('was restarted') },
    ])
    expect(commands()).toHaveLength(before)
  })
})

describe('many runs and many jobs', () => {
  it('that were missed cost a few looks at their schedules each: the time they were last due is not searched', async () => {
    await deployed()
    const id = await added({ expression: '30 4 * * *' })
    const looks = vi.spyOn(Cron.prototype, 'nextRun')
    await at('2026-03-03T12:00:00.000Z')
    expect(looks.mock.calls.length).toBeLessThan(8)
    looks.mockRestore()
    expect(await runs(id)).toMatchObject([{ status: 'missed', slot: '2026-03-03T04:30:00.000Z' }])
    expect(api.events().find(({ type }) => type === 'cron.missed')?.payload).toMatchObject({
      count: 2,
      first: '2026-03-02T04:30:00.000Z',
      last: '2026-03-03T04:30:00.000Z',
    })
  })
  it('are put right a hundred at a time after the clock was far ahead: each may have a command of 400 KB', async () => {
    await deployed()
    const id = await added()
    const { db } = api.kernel
    const columns = (db.raw.pragma('table_info(cron_jobs)') as { name: string }[]).map(({ name }) => name)
    db.tx(() => {
      db.raw.exec(`UPDATE cron_jobs SET next_run_at = '2099-01-01T00:00:00.000Z'`)
      for (let n = 0; n < 250; n += 1)
        db.raw
          .prepare(
            `INSERT INTO cron_jobs SELECT ${columns.map((name) => (name === 'id' ? `'cron_${n}'` : name))} FROM cron_jobs WHERE id = ?`,
          )
          .run(id)
    })
    const { sql } = db
    let most = 0
    db.sql = (text) => {
      const statement = sql(text)
      if (!/^SELECT (?!min).* FROM cron_jobs WHERE enabled = 1( AND rowid|$)/.test(text)) return statement
      const all = statement.all.bind(statement)
      return {
        all: (...values: unknown[]) => {
          const rows = all(...values)
          most = Math.max(most, rows.length)
          return rows
        },
      } as unknown as typeof statement
    }
    api.services.cron.start()
    await api.services.cron.tick()
    db.sql = sql
    expect(most).toBeLessThanOrEqual(100)
    expect(db.sql(`SELECT count(*) FROM cron_jobs WHERE next_run_at > '2090'`).pluck().get()).toBe(0)
    await api.services.cron.stop()
  })
  it('all runs of a job keep a mebibyte of what they printed, the newest of them all that they may', async () => {
    await deployed()
    const id = await added()
    behave(() => ({ exit_code: 0, lines: Array.from({ length: 70 }, () => 'x'.repeat(999)) }))
    for (let run = 0; run < 20; run += 1) {
      await developer().post(`/api/cron-jobs/${id}/run`)
      await api.services.jobs.idle()
    }
    const found = await runs(id)
    const lengths = found.map(({ output }: { output: string }) => output.length)
    expect(lengths.slice(0, 16)).toEqual(Array.from({ length: 16 }, () => 65_000))
    expect(lengths.slice(16)).toEqual([0, 0, 0, 0])
    expect(found.at(-1)).toMatchObject({ status: 'succeeded', truncated: true })
  })
  it('a job that lets its runs overlap has fifty at once at most; what is due beyond that is skipped', async () => {
    await deployed()
    const id = await added({ overlap: 'allow' })
    await api.services.jobs.stop()
    const answers: number[] = []
    for (let run = 0; run < 52; run += 1)
      answers.push((await developer().post(`/api/cron-jobs/${id}/run`)).status)
    expect([answers.filter((status) => status < 300).length, answers.at(-1)]).toEqual([50, 409])
    api.fakes.clock.set('2026-03-01T12:00:00.000Z')
    await api.services.cron.tick()
    expect((await runs(id))[0]).toMatchObject({
      status: 'skipped',
      error: expect.stringContaining('Too many runs'),
    })
    await developer().delete(`/api/cron-jobs/${id}`)
  })
  it('jobs that are due together are begun a few at a time, and one that is deleted meanwhile is not', async () => {
    await deployed()
    const ids: string[] = []
    for (let one = 0; one < 20; one += 1) ids.push(await added())
    await api.services.jobs.stop()
    api.fakes.clock.set('2026-03-01T12:00:00.000Z')
    const ticking = api.services.cron.tick()
    await developer().delete(`/api/cron-jobs/${ids.at(-1)}`)
    await ticking
    const begun = api.kernel.db.sql('SELECT cron_job_id FROM cron_runs').pluck().all() as string[]
    expect(begun.sort()).toEqual(ids.slice(0, -1).sort())
  })
})

describe('a year on a fake clock, at times that change over', () => {
  it('runs every slot of five zones once', async () => {
    await deployed()
    const zones = [
      'Europe/Berlin',
      'America/New_York',
      'America/Santiago',
      'Australia/Lord_Howe',
      'Pacific/Auckland',
    ]
    const ids = new Map<string, string>()
    for (const timezone of zones) ids.set(timezone, await added({ expression: '30 2 * * *', timezone }))
    await api.services.jobs.stop()
    api.services.jobs.enqueue = () => 'job_none'
    const next = () => api.kernel.db.sql('SELECT min(next_run_at) FROM cron_jobs').pluck().get() as string
    for (let due = next(); due < '2027-03-01'; due = next()) {
      api.fakes.clock.set(due)
      await api.services.cron.tick()
      await api.services.cron.tick()
      api.kernel.db.sql(`UPDATE cron_runs SET status = 'succeeded' WHERE status = 'queued'`).run()
    }
    for (const [timezone, id] of ids) {
      const slots = api.kernel.db
        .sql('SELECT slot FROM cron_runs WHERE cron_job_id = ?')
        .pluck()
        .all(id) as string[]
      const day = new Intl.DateTimeFormat('en-CA', { timeZone: timezone, dateStyle: 'short' })
      const days = slots.map((slot) => day.format(new Date(slot)))
      expect([timezone, new Set(days).size, days.length >= 364 && days.length <= 366]).toEqual([
        timezone,
        days.length,
        true,
      ])
    }
  })
})

describe('a run by hand', () => {
  it('starts at once, is told apart, and is in the audit log', async () => {
    await deployed()
    const id = await added({ enabled: false })
    const answer = await developer().post(`/api/cron-jobs/${id}/run`)
    expect([answer.status, answer.body.data]).toMatchObject([
      201,
      { status: 'queued', trigger: 'manual', slot: null },
    ])
    await api.services.jobs.idle()
    expect(await runs(id)).toMatchObject([
      { status: 'succeeded', created_by: api.actor('developer').user_id },
    ])
    const lines = api.kernel.db
      .sql(`SELECT action FROM audit_log WHERE resource_type = 'cron_job'`)
      .pluck()
      .all()
    expect(lines).toEqual(['cron_job.create', 'cron_job.run'])
  })
  it('of an app that has never been live fails with a sentence', async () => {
    api.fakes.git.commit(SHOP_URL, 'main', { 'index.html': 'x' })
    api.fakes.engine.behave(() => true, { build: 'fail' })
    app_id = (await developer().post('/api/apps', { name: 'shop', git_url: SHOP_URL })).body.data.id
    await api.services.jobs.idle()
    const id = await added()
    await developer().post(`/api/cron-jobs/${id}/run`)
    await api.services.jobs.idle()
    expect(await runs(id)).toMatchObject([
      { status: 'failed', error: expect.stringContaining('never been live') },
    ])
  })
})

describe('an HTTP call', () => {
  it('keeps its headers sealed and masked, and the mask keeps them', async () => {
    await deployed()
    const secret = 'Bearer 9f2b7c1e55aa00dd'
    const http = {
      url: 'https://example.com/tasks',
      headers: { Authorization: secret },
      body: 'a private body',
    }
    const id = await added({ command: undefined, http })
    const shown = await developer().get('/api/cron-jobs')
    expect(shown.body.data[0]).toMatchObject({
      command: null,
      http: { url: http.url, method: 'POST', headers: { Authorization: '********' }, has_body: true },
    })
    const rows = () => JSON.stringify(api.kernel.db.sql('SELECT * FROM cron_jobs').all())
    for (const text of [shown.text, rows(), JSON.stringify(api.events())]) {
      expect(text).not.toContain(secret)
      expect(text).not.toContain(http.body)
    }
    const change = { http: { url: 'https://example.com/other', headers: { Authorization: '********' } } }
    expect((await developer().put(`/api/cron-jobs/${id}`, change)).status).toBe(200)
    expect((await add({ command: undefined, http: change.http })).status).toBe(422)
  })
  it.each([
    [
      'a header',
      { headers: { Authorization: '********' }, body: null },
      /^http\.headers\.Authorization: must be sent again/,
    ],
    ['a body', {}, /^http\.body: must be sent again/],
  ])('never takes %s that is hidden to another server', async (_what, rest, message) => {
    await deployed()
    const headers = { Authorization: 'Bearer 9f2b7c1e55aa00dd' }
    const http = { url: 'https://example.com/tasks', headers, body: 'a private body' }
    const path = `/api/cron-jobs/${await added({ command: undefined, http })}`
    const stored = () => api.kernel.db.sql('SELECT url, request FROM cron_jobs').get()
    const before = stored()
    for (const url of ['https://evil.example.net/', 'https://example.com:8443/tasks']) {
      const { status, body } = await developer().put(path, { http: { url, ...rest } })
      expect([status, body.error?.message, stored()]).toEqual([422, expect.stringMatching(message), before])
    }
    const moved = { url: 'https://example.net/', headers, body: null }
    expect((await developer().put(path, { http: moved })).body.data.http).toMatchObject({
      url: moved.url,
      has_body: false,
    })
  })
  it.each([
    'http://169.254.169.254/',
    'https://127.0.0.1/',
    'https://localhost:9000/',
    'ftp://example.com/',
    'nonsense',
  ])('T7: to where this server may not connect is refused: %s', async (url) => {
    await deployed()
    expect((await add({ command: undefined, http: { url } })).status).toBe(422)
  })
  it('needs no command beside it', async () => {
    await deployed()
    expect([
      (await add({ http: { url: 'https://example.com/' } })).status,
      (await add({ command: undefined })).status,
      (await add({ timezone: 'Mars/Base' })).status,
    ]).toEqual([422, 422, 422])
  })
})

describe('jobs of portreeve.json and app.json', () => {
  const file = (jobs: object[]) => ({ 'portreeve.json': JSON.stringify({ cron_jobs: jobs }) })
  const listed = async () =>
    (await developer().get('/api/cron-jobs')).body.data.map(
      ({ expression, command, enabled }: Record<string, unknown>) => [expression, command, enabled],
    )
  const deploy = async (files: Record<string, string>) => {
    commit(files)
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await api.services.jobs.idle()
  }
  it('follow what is live: made, kept with their pause, removed, and back with a rollback', async () => {
    await deployed(
      file([
        { schedule: '0 4 * * *', command: 'one' },
        { schedule: '0 5 * * *', command: 'two' },
      ]),
    )
    expect(await listed()).toEqual([
      ['0 5 * * *', 'two', true],
      ['0 4 * * *', 'one', true],
    ])
    const [two] = (await developer().get('/api/cron-jobs')).body.data
    expect((await developer().put(`/api/cron-jobs/${two.id}`, { enabled: false })).status).toBe(200)
    expect((await developer().put(`/api/cron-jobs/${two.id}`, { expression: '0 6 * * *' })).status).toBe(409)
    expect((await developer().delete(`/api/cron-jobs/${two.id}`)).status).toBe(409)
    const own = await added({ command: 'three' })
    await deploy(
      file([
        { schedule: '0 5 * * *', command: 'two' },
        { schedule: 'never', command: 'bad' },
      ]),
    )
    expect(await listed()).toEqual([
      ['0 * * * *', 'three', true],
      ['0 5 * * *', 'two', false],
    ])
    expect(api.events().filter(({ type }) => type === 'cron_job.refused')).toHaveLength(1)
    await developer().post(`/api/apps/${app_id}/rollback`, {})
    await api.services.jobs.idle()
    expect((await listed()).map(([, command]: string[]) => command).sort()).toEqual(['one', 'three', 'two'])
    expect((await developer().delete(`/api/cron-jobs/${own}`)).status).toBe(200)
  })
  it('of portreeve.yaml that `portreeve apply` made of the same file are there once, as it made them', async () => {
    const yaml = (expression: string) => ({
      'portreeve.yaml': `apps: { shop: { cron: { nightly: { expression: '${expression}', command: tidy } } } }`,
    })
    const own = { name: 'nightly', command: 'tidy', expression: '0 3 * * *', enabled: false }
    await deployed(yaml('0 3 * * *'))
    expect(await listed()).toEqual([['0 3 * * *', 'tidy', true]])
    await added(own)
    expect(await listed()).toEqual([['0 3 * * *', 'tidy', false]])
    await deploy(yaml('0 4 * * *'))
    expect(await listed()).toEqual([['0 3 * * *', 'tidy', false]])
    // The name that a command gives a job says nothing: somebody wants it at another time, too.
    await added({ command: 'sweep', expression: '0 6 * * *' })
    await deploy(file([{ schedule: '0 5 * * *', command: 'sweep' }]))
    expect((await listed()).map(([expression]: string[]) => expression).sort()).toEqual([
      '0 3 * * *',
      '0 5 * * *',
      '0 6 * * *',
    ])
  })
  it('of portreeve.yaml run by the clock of their zone, and not at all when they are switched off there', async () => {
    await deployed({
      'portreeve.yaml': `
apps:
  shop:
    cron:
      berlin: { expression: '30 14 * * *', command: tidy, timezone: Europe/Berlin }
      off: { expression: '0 3 * * *', command: sweep, enabled: false }
`,
    })
    expect((await developer().get('/api/cron-jobs')).body.data).toMatchObject([
      { name: 'berlin', timezone: 'Europe/Berlin', next_run_at: '2026-03-01T13:30:00.000Z' },
    ])
  })
  it('of Heroku are read as well', async () => {
    await deployed({ 'app.json': JSON.stringify({ cron: [{ command: 'sweep', schedule: '0 4 * * *' }] }) })
    expect(await listed()).toEqual([['0 4 * * *', 'sweep', true]])
  })
})
