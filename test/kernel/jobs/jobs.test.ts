import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { attempt } from '#server/kernel/jobs/attempt'
import { Fatal } from '#server/kernel/jobs/definition'
import { createPool } from '#server/kernel/jobs/pool'
import { type Bench, createBench, hang, job, nothing, refuse, untilStopped } from './bench.ts'

let bench: Bench
beforeEach(() => {
  bench = createBench()
})
afterEach(() => bench.kernel.dispose())
const ran = () => bench.diary.filter((line) => /^(run|undo) /.test(line))
/** Forgets a runner as kill -9 would: nothing of it is told to stop. */
const until = (condition: () => boolean) => vi.waitFor(() => expect(condition()).toBe(true), { interval: 5 })

describe('a job', () => {
  it('runs its steps in order and keeps each with its time', async () => {
    const jobs = bench.boot([{ name: 'a', run: async () => bench.kernel.clock.advance(1500) }, { name: 'b' }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(bench.diary).toEqual(['a running', 'run a', 'a succeeded', 'b running', 'run b', 'b succeeded', 'end succeeded'])
    expect(jobs.find(id)).toMatchObject({ status: 'succeeded', started_at: '2026-01-31T12:00:00.000Z', finished_at: '2026-01-31T12:00:01.500Z', state: '{"done":["a","b"]}' })
    expect(jobs.steps(id).map(({ name, status, duration_ms, attempts }) => ({ name, status, duration_ms, attempts }))).toEqual([
      { name: 'a', status: 'succeeded', duration_ms: 1500, attempts: 1 }, { name: 'b', status: 'succeeded', duration_ms: 0, attempts: 1 },
    ])
  })
  it('does not begin before the transaction that queued it has committed, and never after a rollback', async () => {
    const jobs = bench.boot([{ name: 'a' }])
    jobs.start()
    expect(() => bench.kernel.db.tx(() => {
      jobs.enqueue(job())
      throw new Error('no')
    })).toThrow('no')
    bench.kernel.db.tx(() => {
      jobs.enqueue(job())
      expect(bench.diary).toEqual([])
    })
    await jobs.idle()
    expect(ran()).toEqual(['run a'])
  })
  it('may say that a step was not needed', async () => {
    const jobs = bench.boot([{ name: 'a', run: async (context) => context.skip() }])
    jobs.start()
    jobs.enqueue(job())
    await jobs.idle()
    expect(bench.diary).toContain('a skipped')
  })
  it('ends together with what the domain writes about its end, or not at all', async () => {
    let fail = true
    const jobs = bench.boot([{ name: 'a' }], { onEnd: () => {
      bench.kernel.db.sql(`INSERT INTO meta (key, value) VALUES ('ended', ?)`).run(String(fail))
      if (fail) {
        fail = false
        throw new Error('the disk is full')
      }
    } })
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(bench.kernel.db.sql(`SELECT value FROM meta WHERE key = 'ended'`).pluck().all()).toEqual(['false'])
    expect(jobs.find(id)!.status).toBe('succeeded')
    expect(ran()).toEqual(['run a'])
  })
  it('frees its lane even when the end of the domain fails for ever', async () => {
    const jobs = bench.boot([{ name: 'a', undo: nothing }], { onEnd: () => {
      throw new Error('a bug')
    } })
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.find(id)).toMatchObject({ status: 'failed' })
    expect(JSON.parse(jobs.find(id)!.failure!)).toMatchObject({ code: 'internal' })
    expect(ran().filter((line) => line === 'run a')).toHaveLength(1)
  })
  it('runs work after its end that may fail without harm', async () => {
    const seen: string[] = []
    const jobs = bench.boot([{ name: 'a' }], { afterEnd: (row, outcome) => {
      seen.push(`${row.status} ${outcome.status}`)
      throw new Error('mail server is down')
    } })
    jobs.start()
    jobs.enqueue(job())
    await jobs.idle()
    expect(seen).toEqual(['succeeded succeeded'])
  })
  it('refuses a step that names a pool which does not exist, at the start and not in the middle of the night', () => {
    expect(() => bench.boot([{ name: 'a', pool: 'bulid' }])).toThrow('Step bench.a names the pool bulid')
  })
})

describe('a failure', () => {
  it("that is the user's stops at once, undoes in reverse what began, and says what to do", async () => {
    const jobs = bench.boot([{ name: 'a', undo: nothing }, { name: 'b' }, { name: 'c', run: refuse, undo: nothing }, { name: 'd', undo: nothing }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(ran()).toEqual(['run a', 'run b', 'run c', 'undo c', 'undo a'])
    expect(bench.diary.at(-1)).toBe('end failed')
    expect(JSON.parse(jobs.find(id)!.failure!)).toEqual({ code: 'user_fault', message: 'The repository is empty.', hint: 'Push a commit.', step: 'c', log: [] })
    expect(jobs.steps(id).map((step) => step.status)).toEqual(['succeeded', 'succeeded', 'failed', 'pending'])
    expect(bench.pauses).toEqual([])
  })
  it("that is the system's is tried again with a growing back-off, and succeeds when it passes", async () => {
    let left = 2
    const jobs = bench.boot([{ name: 'a', attempts: 3, run: async () => {
      if (left-- > 0) throw new Error('connection reset')
    } }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(bench.pauses).toEqual([500, 1000])
    expect(jobs.steps(id)[0]).toMatchObject({ status: 'succeeded', attempts: 3, duration_ms: 1500 })
  })
  it("that is the system's ends the job when the attempts are used up", async () => {
    const jobs = bench.boot([{ name: 'a', attempts: 2, run: async () => {
      throw new Error('connection reset')
    } }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.steps(id)[0]).toMatchObject({ status: 'failed', attempts: 2 })
    expect(jobs.find(id)!.status).toBe('failed')
  })
  it('of something outside that is down is waited for, five minutes at most', async () => {
    let calls = 0
    const jobs = bench.boot([{ name: 'a', attempts: 1, run: async () => {
      calls += 1
      throw Object.assign(new Error('the engine is down'), { kind: 'wait' })
    } }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.find(id)!.status).toBe('failed')
    expect(calls).toBeGreaterThan(20)
    const waited_ms = bench.pauses.reduce((sum, pause) => sum + pause, 0)
    expect(waited_ms).toBeGreaterThanOrEqual(300_000)
    expect(waited_ms).toBeLessThan(320_000)
  })
  it('of an undo is tried again, and does not keep the other steps from being undone', async () => {
    let calls = 0
    const jobs = bench.boot([{ name: 'a', undo: nothing }, { name: 'b', run: refuse, undo: async () => {
      calls += 1
      throw new Error('still in use')
    } }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(calls).toBe(5)
    expect(ran().at(-1)).toBe('undo a')
    expect(jobs.find(id)!.status).toBe('failed')
  })
  it('of a step past the point of no return is recorded, and the job succeeds', async () => {
    const jobs = bench.boot([{ name: 'switch', undo: nothing }, { name: 'retire', irrevocable: true, run: refuse }, { name: 'tidy', irrevocable: true }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(ran()).toEqual(['run switch', 'run retire', 'run tidy'])
    expect(jobs.steps(id).map((step) => step.status)).toEqual(['succeeded', 'failed', 'succeeded'])
    expect(jobs.find(id)!.status).toBe('succeeded')
  })
})

describe('a time limit', () => {
  it('stops a step through its signal, says so, and does not try it again', async () => {
    const jobs = bench.boot([{ name: 'a', timeout_ms: 20, run: untilStopped, undo: nothing }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(JSON.parse(jobs.find(id)!.failure!)).toMatchObject({ code: 'timeout', step: 'a', message: 'The step «a» took longer than 0 seconds and was stopped.' })
    expect(ran()).toEqual(['run a', 'undo a'])
  })
  it('does not count the time that a step waits for its turn', async () => {
    vi.useFakeTimers()
    try {
      const limits = { name: 'build', timeout_ms: 1000, pool: createPool(1), stop: new AbortController().signal }
      const end_of_another = await limits.pool.acquire(limits.stop)
      const waiting = attempt(async (signal) => signal.throwIfAborted(), limits)
      await vi.advanceTimersByTimeAsync(60_000)
      end_of_another()
      expect(await waiting).toEqual({ kind: 'done' })
    } finally {
      vi.useRealTimers()
    }
  })
  it('leaves a step behind that does not listen, so that the lane goes on', async () => {
    vi.useFakeTimers()
    try {
      const jobs = bench.boot([{ name: 'a', timeout_ms: 1000, run: ({ payload }) => ((payload as { subject: string }).subject === 'deaf' ? hang() : Promise.resolve()) }])
      jobs.start()
      const deaf = jobs.enqueue(job('app:1', 'deaf'))
      const next = jobs.enqueue(job('app:1', 'next'))
      await vi.advanceTimersByTimeAsync(11_500)
      expect([jobs.find(deaf)!.status, jobs.find(next)!.status]).toEqual(['failed', 'succeeded'])
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('cancelling', () => {
  it('a queued job ends it at once, in the same transaction, without running anything', () => {
    const jobs = bench.boot([{ name: 'a' }])
    const id = jobs.enqueue(job())
    expect(jobs.cancel(id)).toBe(true)
    expect(jobs.find(id)!.status).toBe('cancelled')
    expect(bench.diary).toEqual(['end cancelled'])
    expect(jobs.cancel(id)).toBe(false)
  })
  it('lets a newer job supersede the queued ones before it', async () => {
    const jobs = bench.boot([{ name: 'a' }])
    const older = [jobs.enqueue(job('app:1', 'dep_1')), jobs.enqueue(job('app:1', 'dep_2'))]
    const newest = bench.kernel.db.tx(() => {
      for (const id of older) jobs.cancel(id)
      return jobs.enqueue(job('app:1', 'dep_3'))
    })
    jobs.start()
    await jobs.idle()
    expect([...older, newest].map((id) => jobs.find(id)!.status)).toEqual(['cancelled', 'cancelled', 'succeeded'])
    expect(ran()).toEqual(['run a'])
  })
  it('a running job reaches the step through its signal and undoes it', async () => {
    const jobs = bench.boot([{ name: 'a', undo: nothing }, { name: 'b', run: untilStopped, undo: nothing }, { name: 'c' }])
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => bench.diary.includes('run b'))
    expect(jobs.cancel(id)).toBe(true)
    await jobs.idle()
    expect(ran()).toEqual(['run a', 'run b', 'undo b', 'undo a'])
    expect(bench.diary).toContain('b cancelled')
    expect(jobs.find(id)).toMatchObject({ status: 'cancelled', failure: null })
  })
  it('is heard while a step waits for its turn in a pool', async () => {
    let release: () => void = () => undefined
    const jobs = bench.boot([{ name: 'build', pool: 'build', run: () => new Promise<void>((resolve) => (release = resolve)) }])
    jobs.start()
    const first = jobs.enqueue(job('app:1', 'first'))
    const second = jobs.enqueue(job('app:2', 'second'))
    await until(() => jobs.find(second)!.status === 'running')
    jobs.cancel(second)
    await until(() => jobs.find(second)!.status === 'cancelled')
    expect(jobs.find(first)!.status).toBe('running')
    release()
    await jobs.idle()
    expect(ran()).toEqual(['run build'])
  })
  it('is heard while a failed step waits for its next attempt', async () => {
    const jobs = bench.boot([{ name: 'a', attempts: 3, run: async () => {
      throw new Error('connection reset')
    } }], { options: { pause: (_ms, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())) } })
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => ran().length === 1 && bench.kernel.lines.some((line) => line.message === 'A step is tried again'))
    jobs.cancel(id)
    await jobs.idle()
    expect(jobs.find(id)!.status).toBe('cancelled')
    expect(ran()).toEqual(['run a'])
  })
  it('counts even when the step ends well in the same moment', async () => {
    const jobs = bench.boot([{ name: 'a', run: async ({ job_id }) => void jobs.cancel(job_id), undo: nothing }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.find(id)!.status).toBe('cancelled')
    expect(ran()).toEqual(['run a', 'undo a'])
  })
  it('is refused past the point of no return, and while undoing', async () => {
    const answers: boolean[] = []
    const jobs = bench.boot([{ name: 'a', undo: nothing }, { name: 'b', irrevocable: true, run: async ({ job_id }) => void answers.push(jobs.cancel(job_id)) }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect([answers, jobs.find(id)!.status]).toEqual([[false], 'succeeded'])

    const other = bench.boot([{ name: 'a', run: refuse, undo: async ({ job_id }) => void answers.push(other.cancel(job_id)) }])
    other.start()
    const failed = other.enqueue(job())
    await other.idle()
    expect([answers, other.find(failed)!.status]).toEqual([[false, false], 'failed'])
  })
  it('survives a crash that comes before the job could react', async () => {
    const before = bench.boot([{ name: 'a', run: hang, undo: nothing }])
    before.start()
    const id = before.enqueue(job())
    await until(() => bench.diary.includes('run a'))
    before.repository.requestCancel(id)
    const after = bench.boot([{ name: 'a', undo: nothing }])
    after.start()
    await after.idle()
    expect(after.find(id)!.status).toBe('cancelled')
    expect(ran()).toEqual(['run a', 'undo a'])
  })
})

describe('lanes and pools', () => {
  it('run the jobs of one app one after the other, oldest first, and those of different apps side by side', async () => {
    const at_work = new Set<string>()
    let most = 0
    const jobs = bench.boot([{ name: 'a', run: async ({ payload }) => {
      const { subject } = payload as { subject: string }
      expect([...at_work].some((other) => other[0] === subject[0])).toBe(false)
      at_work.add(subject)
      most = Math.max(most, at_work.size)
      await new Promise((resolve) => setTimeout(resolve, 2))
      at_work.delete(subject)
      bench.diary.push(subject)
    } }])
    jobs.start()
    for (const subject of ['x1', 'x2', 'y1', 'x3', 'y2']) jobs.enqueue(job(`app:${subject[0]}`, subject))
    await jobs.idle()
    const order = bench.diary.filter((line) => /^[xy]\d$/.test(line))
    expect(order.filter((line) => line[0] === 'x')).toEqual(['x1', 'x2', 'x3'])
    expect(order.filter((line) => line[0] === 'y')).toEqual(['y1', 'y2'])
    expect(most).toBe(2)
  })
  it('keep a lane closed while its job is being undone', async () => {
    let release: () => void = () => undefined
    const jobs = bench.boot([{ name: 'a', run: async ({ payload }) => {
      if ((payload as { subject: string }).subject === 'first') throw new Fatal('x', 'x')
    }, undo: () => new Promise<void>((resolve) => (release = resolve)) }])
    jobs.start()
    jobs.enqueue(job('app:1', 'first'))
    const second = jobs.enqueue(job('app:1', 'second'))
    await until(() => bench.diary.includes('undo a'))
    expect(jobs.find(second)!.status).toBe('queued')
    release()
    await jobs.idle()
    expect(jobs.find(second)!.status).toBe('succeeded')
  })
  it('take a new size of a pool at once: more enter, and fewer enter once enough of those that run have ended', async () => {
    const open = new Map<string, () => void>()
    const jobs = bench.boot([{ name: 'build', pool: 'build', run: ({ payload }) => new Promise<void>((resolve) => open.set((payload as { subject: string }).subject, resolve)) }])
    jobs.start()
    const names = ['1', '2', '3', '4', '5']
    for (const name of names) jobs.enqueue(job(`app:${name}`, name))
    await until(() => open.size === 1)
    jobs.resizePool('build', 3)
    await until(() => open.size === 3)
    jobs.resizePool('build', 1)
    open.get('1')!()
    open.get('2')!()
    await until(() => jobs.repository.runnable(9).length === 0 && [...open.keys()].join() === '1,2,3')
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
    const jobs = bench.boot([{ name: 'build', pool: 'build', run: async () => {
      most.push(++at_work)
      await new Promise((resolve) => setTimeout(resolve, 1))
      at_work -= 1
    } }])
    jobs.start()
    for (let n = 0; n < 6; n += 1) jobs.enqueue(job(`app:${n}`))
    await jobs.idle()
    expect(most).toEqual([1, 1, 1, 1, 1, 1])
  })
  it('limit how many jobs run at once', async () => {
    let at_work = 0
    let most = 0
    const jobs = bench.boot([{ name: 'a', run: async () => {
      most = Math.max(most, ++at_work)
      await new Promise((resolve) => setTimeout(resolve, 1))
      at_work -= 1
    } }], { options: { max_running: 2 } })
    jobs.start()
    for (let n = 0; n < 7; n += 1) jobs.enqueue(job(`app:${n}`))
    await jobs.idle()
    expect([most, ran().length]).toEqual([2, 7])
  })
})
