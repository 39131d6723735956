import { describe, expect, it } from 'vitest'
import { Fatal } from '#server/kernel/jobs/definition'
import { createJobRepository } from '#server/kernel/jobs/repository'
import { job, nothing, until, untilStopped, useHarness } from './harness.ts'

const harness = useHarness()

describe('a job', () => {
  it('runs its steps in order and keeps each with its time', async () => {
    const jobs = harness.boot([
      { name: 'a', run: async () => harness.kernel.clock.advance(1500) },
      { name: 'b' },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(harness.diary).toEqual([
      'a running',
      'run a',
      'a succeeded',
      'b running',
      'run b',
      'b succeeded',
      'end succeeded',
    ])
    expect(jobs.find(id)).toMatchObject({
      status: 'succeeded',
      started_at: '2026-01-31T12:00:00.000Z',
      finished_at: '2026-01-31T12:00:01.500Z',
      state: '{"done":["a","b"]}',
    })
    expect(
      jobs.steps(id).map(({ name, status, duration_ms, attempts }) => ({
        name,
        status,
        duration_ms,
        attempts,
      })),
    ).toEqual([
      { name: 'a', status: 'succeeded', duration_ms: 1500, attempts: 1 },
      { name: 'b', status: 'succeeded', duration_ms: 0, attempts: 1 },
    ])
  })
  it('does not begin before the transaction that queued it has committed, and never after a rollback', async () => {
    const jobs = harness.boot([{ name: 'a' }])
    jobs.start()
    expect(() =>
      harness.kernel.db.tx(() => {
        jobs.enqueue(job())
        throw new Error('no')
      }),
    ).toThrow('no')
    harness.kernel.db.tx(() => {
      jobs.enqueue(job())
      expect(harness.diary).toEqual([])
    })
    await jobs.idle()
    expect(harness.ran()).toEqual(['run a'])
  })
  it('may say that a step was not needed', async () => {
    const jobs = harness.boot([{ name: 'a', run: async (context) => context.skip() }])
    jobs.start()
    jobs.enqueue(job())
    await jobs.idle()
    expect(harness.diary).toContain('a skipped')
  })
  it('ends together with what the domain writes about its end, or not at all', async () => {
    let fail = true
    const jobs = harness.boot([{ name: 'a' }], {
      onEnd: () => {
        harness.kernel.db.sql(`INSERT INTO meta (key, value) VALUES ('ended', ?)`).run(String(fail))
        if (fail) {
          fail = false
          throw new Error('the disk is full')
        }
      },
    })
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(harness.kernel.db.sql(`SELECT value FROM meta WHERE key = 'ended'`).pluck().all()).toEqual([
      'false',
    ])
    expect(jobs.find(id)!.status).toBe('succeeded')
    expect(harness.ran()).toEqual(['run a'])
  })
  it('frees its lane even when the end of the domain fails for ever', async () => {
    const jobs = harness.boot([{ name: 'a', undo: nothing }], {
      onEnd: () => {
        throw new Error('a bug')
      },
    })
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.find(id)).toMatchObject({ status: 'failed' })
    expect(JSON.parse(jobs.find(id)!.failure!)).toMatchObject({ code: 'internal' })
    expect(harness.ran().filter((line) => line === 'run a')).toHaveLength(1)
  })
  it('runs work after its end that may fail without harm', async () => {
    const seen: string[] = []
    const jobs = harness.boot([{ name: 'a' }], {
      afterEnd: (row, outcome) => {
        seen.push(`${row.status} ${outcome.status}`)
        throw new Error('mail server is down')
      },
    })
    jobs.start()
    jobs.enqueue(job())
    await jobs.idle()
    expect(seen).toEqual(['succeeded succeeded'])
  })
  it('refuses a step that names a pool which does not exist, at the start and not in the middle of the night', () => {
    expect(() => harness.boot([{ name: 'a', pool: 'bulid' }])).toThrow('Step bench.a names the pool bulid')
  })
})

describe('lanes and pools', () => {
  it('run the jobs of one app one after the other, oldest first, and those of different apps side by side', async () => {
    const at_work = new Set<string>()
    let most = 0
    const jobs = harness.boot([
      {
        name: 'a',
        run: async ({ payload }) => {
          const { subject } = payload as { subject: string }
          expect([...at_work].some((other) => other[0] === subject[0])).toBe(false)
          at_work.add(subject)
          most = Math.max(most, at_work.size)
          await new Promise((resolve) => setTimeout(resolve, 2))
          at_work.delete(subject)
          harness.diary.push(subject)
        },
      },
    ])
    jobs.start()
    for (const subject of ['x1', 'x2', 'y1', 'x3', 'y2']) jobs.enqueue(job(`app:${subject[0]}`, subject))
    await jobs.idle()
    const order = harness.diary.filter((line) => /^[xy]\d$/.test(line))
    expect(order.filter((line) => line[0] === 'x')).toEqual(['x1', 'x2', 'x3'])
    expect(order.filter((line) => line[0] === 'y')).toEqual(['y1', 'y2'])
    expect(most).toBe(2)
  })
  it('let a job that needs several begin once all of them are free, and keep others out of each meanwhile', async () => {
    const order: string[] = []
    const ends = new Map<string, () => void>()
    const jobs = harness.boot([
      {
        name: 'work',
        async run({ payload }) {
          const { subject } = payload as { subject: string }
          order.push(subject)
          await new Promise<void>((resolve) => ends.set(subject, resolve))
        },
      },
    ])
    jobs.start()
    const end = (subject: string) => ends.get(subject)!()
    jobs.enqueue(job('app:1', 'first'))
    jobs.enqueue({ ...job('volume:1', 'wide'), lanes: ['app:1', 'app:2', 'volume:1'] })
    jobs.enqueue({ ...job('volume:2', 'other wide'), lanes: ['app:2', 'app:1'] })
    jobs.enqueue(job('app:2', 'second'))
    jobs.enqueue(job('volume:1', 'third'))
    jobs.enqueue(job('app:3', 'apart'))
    await until(() => order.length === 2)
    expect(order).toEqual(['first', 'apart'])
    end('first')
    await until(() => order.length === 3)
    end('wide')
    await until(() => order.length === 5)
    expect(order.slice(2)).toEqual(['wide', 'other wide', 'third'])
    end('other wide')
    await until(() => order.length === 6)
    for (const subject of ['second', 'third', 'apart']) end(subject)
    await jobs.idle()
    expect(order.at(-1)).toBe('second')
  })
  it('that a job holds beside its own are held after a restart', async () => {
    const boot = () => harness.boot([{ name: 'work', run: untilStopped }])
    const jobs = boot()
    jobs.start()
    jobs.enqueue({ ...job('volume:1', 'wide'), lanes: ['app:1'] })
    const behind = jobs.enqueue(job('app:1', 'behind'))
    await until(() => harness.ran().length === 1)
    await jobs.stop()
    const next = boot()
    next.start()
    await until(() => harness.ran().length === 2)
    expect(next.find(behind)?.status).toBe('queued')
    await next.stop()
  })
  it('keep a lane closed while its job is being undone', async () => {
    let release: () => void = () => undefined
    const jobs = harness.boot([
      {
        name: 'a',
        run: async ({ payload }) => {
          if ((payload as { subject: string }).subject === 'first') throw new Fatal('gone', 'x')
        },
        undo: () => new Promise<void>((resolve) => (release = resolve)),
      },
    ])
    jobs.start()
    jobs.enqueue(job('app:1', 'first'))
    const second = jobs.enqueue(job('app:1', 'second'))
    await until(() => harness.diary.includes('undo a'))
    expect(jobs.find(second)!.status).toBe('queued')
    release()
    await jobs.idle()
    expect(jobs.find(second)!.status).toBe('succeeded')
  })
  it('take a new size of a pool at once: more enter, and fewer enter once enough of those that run have ended', async () => {
    const open = new Map<string, () => void>()
    const jobs = harness.boot([
      {
        name: 'build',
        pool: 'build',
        run: ({ payload }) =>
          new Promise<void>((resolve) => open.set((payload as { subject: string }).subject, resolve)),
      },
    ])
    jobs.start()
    const names = ['1', '2', '3', '4', '5']
    for (const name of names) jobs.enqueue(job(`app:${name}`, name))
    await until(() => open.size === 1)
    jobs.resizePool('build', 3)
    await until(() => open.size === 3)
    jobs.resizePool('build', 1)
    open.get('1')!()
    open.get('2')!()
    await until(
      () =>
        createJobRepository(harness.kernel.db).runnable(9).length === 0 &&
        [...open.keys()].join() === '1,2,3',
    )
    open.get('3')!()
    await until(() => open.size === 4)
    open.get('4')!()
    await until(() => open.size === 5)
    open.get('5')!()
    await jobs.idle()
    expect([...open.keys()]).toEqual(names)
  })
  it('limit how many steps of a kind run at once on the installation', async () => {
    let at_work = 0
    const most: number[] = []
    const jobs = harness.boot([
      {
        name: 'build',
        pool: 'build',
        run: async () => {
          most.push(++at_work)
          await new Promise((resolve) => setTimeout(resolve, 1))
          at_work -= 1
        },
      },
    ])
    jobs.start()
    for (let n = 0; n < 6; n += 1) jobs.enqueue(job(`app:${n}`))
    await jobs.idle()
    expect(most).toEqual([1, 1, 1, 1, 1, 1])
  })
  it('limit how many jobs run at once', async () => {
    let at_work = 0
    let most = 0
    const jobs = harness.boot(
      [
        {
          name: 'a',
          run: async () => {
            most = Math.max(most, ++at_work)
            await new Promise((resolve) => setTimeout(resolve, 1))
            at_work -= 1
          },
        },
      ],
      { options: { max_running: 2 } },
    )
    jobs.start()
    for (let n = 0; n < 7; n += 1) jobs.enqueue(job(`app:${n}`))
    await jobs.idle()
    expect([most, harness.ran().length]).toEqual([2, 7])
  })
  it('start the job of another project while one has queued more than may run at once', async () => {
    const open = new Map<string, () => void>()
    const jobs = harness.boot(
      [
        {
          name: 'a',
          pool: 'build',
          run: ({ payload }) =>
            new Promise<void>((resolve) => open.set((payload as { subject: string }).subject, resolve)),
        },
      ],
      { options: { max_running: 4 } },
    )
    jobs.start()
    const of = (project_id: string, name: string) =>
      jobs.enqueue({ ...job(`app:${name}`, name), project_id: `prj_${project_id}` })
    const end = async (name: string) => {
      await until(() => open.has(name))
      open.get(name)!()
    }
    of('ada', 'ada0')
    await end('ada0')
    for (let n = 0; n < 9; n += 1) of('eve', `eve${n}`)
    await until(() => open.has('eve0'))
    of('ada', 'ada1')
    await end('eve0')
    await end('ada1')
    expect([...open.keys()]).toEqual(['ada0', 'eve0', 'ada1'])
    for (let n = 1; n < 9; n += 1) await end(`eve${n}`)
    await jobs.idle()
    expect(open.size).toBe(11)
  })
})
