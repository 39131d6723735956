import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createEvents, type Events, type PlatformEvent } from '#server/kernel/events'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

let kernel: TestKernel
let events: Events
let heard: PlatformEvent[]
beforeEach(() => {
  kernel = createTestKernel()
  events = createEvents(kernel.db, kernel.clock, kernel.log)
  heard = []
  events.subscribe((event) => heard.push(event))
})
afterEach(() => kernel.dispose())
const append = (type: string, more: Partial<PlatformEvent> = {}) =>
  events.append({ type, payload: { n: 1 }, ...more })

describe('an event', () => {
  it('is heard after the commit of the change that it tells, with its place in the order', () => {
    kernel.db.tx(() => {
      append('app.created', { app_id: 'app_1', project_id: 'prj_1', actor_id: 'usr_1' })
      append('deployment.queued', { app_id: 'app_1' })
      expect(heard).toEqual([])
    })
    expect(heard.map((event) => [event.seq, event.type])).toEqual([
      [1, 'app.created'],
      [2, 'deployment.queued'],
    ])
    expect(heard[0]).toEqual({
      seq: 1,
      type: 'app.created',
      payload: { n: 1 },
      project_id: 'prj_1',
      app_id: 'app_1',
      deployment_id: null,
      actor_id: 'usr_1',
      created_at: '2026-01-31T12:00:00.000Z',
    })
  })
  it('of a change that was rolled back is never heard nor kept', () => {
    expect(() =>
      kernel.db.tx(() => {
        append('app.created')
        throw new Error('no')
      }),
    ).toThrow('no')
    append('app.updated')
    expect(heard.map((event) => event.type)).toEqual(['app.updated'])
    expect(events.after(0, {}, 10).map((event) => event.type)).toEqual(['app.updated'])
  })
  it('reaches everyone although one of the listeners fails', () => {
    const others: string[] = []
    events.subscribe(() => {
      throw new Error('broken listener')
    })
    events.subscribe((event) => others.push(event.type))
    append('app.created')
    expect([heard.length, others]).toEqual([1, ['app.created']])
    expect(kernel.lines).toContainEqual(
      expect.objectContaining({ level: 'error', message: 'A listener of events failed' }),
    )
  })
  it('is not heard any more after unsubscribing', () => {
    const stop = events.subscribe(() => heard.push({} as PlatformEvent))
    stop()
    append('app.created')
    expect(heard).toHaveLength(1)
  })
})

describe('the events so far', () => {
  beforeEach(() => {
    for (let n = 1; n <= 10; n += 1)
      append(n % 2 ? 'app.updated' : 'deployment.step', {
        app_id: n <= 5 ? 'app_1' : 'app_2',
        deployment_id: n % 2 ? null : 'dep_1',
        project_id: 'prj_1',
      })
  })
  it('can be read from any position without a gap', () => {
    const read: number[] = []
    for (let cursor = 0; ; ) {
      const page = events.after(cursor, {}, 3)
      if (page.length === 0) break
      read.push(...page.map((event) => event.seq))
      cursor = page.at(-1)!.seq
    }
    expect(read).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(events.latest()).toBe(10)
  })
  it('can be narrowed to an app, a deployment, a project and kinds', () => {
    const seqs = (filter: Parameters<Events['after']>[1]) =>
      events.after(0, filter, 100).map((event) => event.seq)
    expect(seqs({ app_id: 'app_1' })).toEqual([1, 2, 3, 4, 5])
    expect(seqs({ deployment_id: 'dep_1' })).toEqual([2, 4, 6, 8, 10])
    expect(seqs({ project_id: 'prj_2' })).toEqual([])
    expect(seqs({ app_id: 'app_2', types: ['deployment.step'] })).toEqual([6, 8, 10])
    expect(seqs({ types: ["x') OR 1=1 --"] })).toEqual([])
  })
  it('come in pages, newest first, with their number', () => {
    const page = events.page({ app_id: 'app_1' }, 2, 2)
    expect([page.rows.map((event) => event.seq), page.total]).toEqual([[3, 2], 5])
  })
  it('keep their order after the oldest were forgotten, so that no position is given twice', () => {
    expect(events.prune('2027-01-01T00:00:00.000Z')).toBe(10)
    append('app.created')
    expect(events.after(0, {}, 10).map((event) => event.seq)).toEqual([11])
  })
})

it('events of several projects come in their one order, however many there are of one of them', () => {
  for (let at = 0; at < 40; at += 1) append('app.updated', { project_id: at % 4 === 3 ? 'prj_b' : 'prj_a' })
  append('app.created', { project_id: 'prj_c' })
  append('app.created', { project_id: null })
  const seen: number[] = []
  const filter = { in_projects: ['prj_c', 'prj_b', 'prj_none'] }
  for (;;) {
    const page = events.after(seen.at(-1) ?? 0, filter, 3)
    if (page.length === 0) break
    seen.push(...page.map(({ seq }) => seq))
  }
  expect(seen).toEqual([4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 41])
  expect(events.page(filter, 2, 0)).toMatchObject({ total: 11, rows: [{ seq: 41 }, { seq: 40 }] })
  expect(events.page({ in_projects: 'all' }, 1, 0).total).toBe(41)
})
