import { describe, expect, it, vi } from 'vitest'
import { hang, job, nothing, refuse, until, untilStopped, useHarness } from './harness.ts'

const harness = useHarness()

describe('after a crash', () => {
  it('a job goes on at the step that was running, with the state of the steps before', async () => {
    const before = harness.boot([{ name: 'a' }, { name: 'b', run: hang }, { name: 'c' }])
    before.start()
    const id = before.enqueue(job())
    await until(() => harness.diary.includes('run b'))
    harness.diary.length = 0
    const after = harness.boot([{ name: 'a' }, { name: 'b' }, { name: 'c' }])
    after.start()
    await after.idle()
    expect(harness.ran()).toEqual(['run b', 'run c'])
    expect(after.find(id)).toMatchObject({ status: 'succeeded', state: '{"done":["a","b","c"]}' })
  })
  it('what a step saved in its middle is there', async () => {
    const before = harness.boot([
      {
        name: 'a',
        run: (context) => {
          context.state.done.push('half')
          context.save()
          context.state.done.push('lost')
          return hang()
        },
      },
    ])
    before.start()
    const id = before.enqueue(job())
    await until(() => harness.diary.includes('run a'))
    const after = harness.boot([{ name: 'a' }])
    after.start()
    await after.idle()
    expect(after.find(id)!.state).toBe('{"done":["a","half","a"]}')
  })
  it('the queue is still there, in its order', async () => {
    const before = harness.boot([{ name: 'a' }])
    for (const subject of ['1', '2', '3']) before.enqueue(job('app:1', subject))
    const order: string[] = []
    const after = harness.boot([
      {
        name: 'a',
        run: async ({ payload }) => void order.push((payload as { subject: string }).subject),
      },
    ])
    after.start()
    await after.idle()
    expect(order).toEqual(['1', '2', '3'])
  })
  it('undoing goes on, and the job ends with the failure that began it', async () => {
    const before = harness.boot([
      { name: 'a', undo: nothing },
      { name: 'b', run: refuse, undo: hang },
    ])
    before.start()
    const id = before.enqueue(job())
    await until(() => harness.diary.includes('undo b'))
    harness.diary.length = 0
    const after = harness.boot([
      { name: 'a', undo: nothing },
      { name: 'b', undo: nothing },
    ])
    after.start()
    await after.idle()
    expect(harness.ran()).toEqual(['undo b', 'undo a'])
    expect(JSON.parse(after.find(id)!.failure!)).toMatchObject({ code: 'git_empty', step: 'b' })
    expect(after.find(id)!.status).toBe('failed')
  })
  it('between the last step and the end, the job ends without running anything again', async () => {
    const before = harness.boot([{ name: 'a' }], {
      onEnd: () => {
        throw new Error('killed here')
      },
      options: { pause: () => new Promise(() => undefined) },
    })
    before.start()
    const id = before.enqueue(job())
    await until(() => harness.diary.includes('a succeeded'))
    const after = harness.boot([{ name: 'a' }])
    after.start()
    await after.idle()
    expect(after.find(id)!.status).toBe('succeeded')
    expect(harness.ran()).toEqual(['run a'])
  })
  it('a step past the point of no return that failed is not run again', async () => {
    const before = harness.boot([
      { name: 'retire', irrevocable: true, run: refuse },
      { name: 'tidy', irrevocable: true, run: hang },
    ])
    before.start()
    before.enqueue(job())
    await until(() => harness.diary.includes('run tidy'))
    harness.diary.length = 0
    const after = harness.boot([
      { name: 'retire', irrevocable: true },
      { name: 'tidy', irrevocable: true },
    ])
    after.start()
    await after.idle()
    expect(harness.ran()).toEqual(['run tidy'])
  })
  it('a job goes on after an upgrade that knows other steps, each by its name', async () => {
    const before = harness.boot([{ name: 'clone' }, { name: 'build', run: hang }, { name: 'start' }])
    before.start()
    const id = before.enqueue(job())
    await until(() => harness.diary.includes('run build'))
    harness.diary.length = 0
    const after = harness.boot([{ name: 'clone' }, { name: 'detect' }, { name: 'build' }, { name: 'launch' }])
    after.start()
    await after.idle()
    expect(harness.ran()).toEqual(['run detect', 'run build', 'run launch'])
    expect(after.steps(id).map((step) => `${step.name} ${step.status}`)).toEqual([
      'clone succeeded',
      'detect succeeded',
      'build succeeded',
      'launch succeeded',
    ])
  })
  it('a job of a kind that an upgrade dropped ends as failed and does not keep the others waiting', async () => {
    const before = harness.boot([{ name: 'a' }])
    const old = before.enqueue(job('app:1'))
    harness.kernel.db.sql(`UPDATE jobs SET kind = 'dropped'`).run()
    const after = harness.boot([{ name: 'a' }])
    const next = after.enqueue(job('app:1'))
    after.start()
    await after.idle()
    expect([after.find(old)!.status, after.find(next)!.status]).toEqual(['failed', 'succeeded'])
  })
})

describe('a step that takes the process down each time', () => {
  it('is given up after a few starts, undone, and explained', async () => {
    let starts = 0
    let id = ''
    for (; starts < 20; starts += 1) {
      const jobs = harness.boot([
        { name: 'a', undo: nothing },
        { name: 'oom', run: hang, undo: nothing },
      ])
      if (starts === 0) id = jobs.enqueue(job())
      const began = harness.diary.length
      jobs.start()
      await until(() => harness.diary.slice(began).includes('run oom') || jobs.find(id)!.finished_at !== null)
      if (jobs.find(id)!.finished_at) break
    }
    expect(starts).toBe(6)
    expect(harness.ran().filter((line) => line === 'run a')).toHaveLength(1)
    expect(harness.ran().slice(-2)).toEqual(['undo oom', 'undo a'])
    const jobs = harness.boot([])
    expect(JSON.parse(jobs.find(id)!.failure!)).toMatchObject({
      code: 'interrupted',
      step: 'oom',
      message: expect.stringContaining('ended 6 times'),
    })
  })
  it('while undoing is left to the reconciler after a few starts', async () => {
    let id = ''
    let starts = 0
    for (; starts < 20; starts += 1) {
      const jobs = harness.boot([{ name: 'a', run: refuse, undo: hang }])
      if (starts === 0) id = jobs.enqueue(job())
      const began = harness.diary.length
      jobs.start()
      await until(() => harness.diary.slice(began).includes('undo a') || jobs.find(id)!.finished_at !== null)
      if (jobs.find(id)!.finished_at) break
    }
    expect(starts).toBe(6)
    expect(harness.boot([]).find(id)!.status).toBe('failed')
    expect(harness.diary.at(-1)).toBe('end failed')
  })
  it('is forgotten once a step succeeds: crashes in different steps do not add up', async () => {
    const steps = Array.from({ length: 8 }, (_, n) => `s${n}`)
    let id = ''
    for (let crash_at = 0; crash_at < steps.length; crash_at += 1) {
      const jobs = harness.boot(steps.map((name, n) => ({ name, ...(n === crash_at ? { run: hang } : {}) })))
      if (crash_at === 0) id = jobs.enqueue(job())
      jobs.start()
      await until(() => harness.diary.includes(`run s${crash_at}`))
    }
    const last = harness.boot(steps.map((name) => ({ name })))
    last.start()
    await last.idle()
    expect(last.find(id)!.status).toBe('succeeded')
  })
  it('may be restarted in good order as often as one likes', async () => {
    let id = ''
    for (let restart = 0; restart < 12; restart += 1) {
      const jobs = harness.boot([{ name: 'build', run: untilStopped }])
      if (restart === 0) id = jobs.enqueue(job())
      const began = harness.diary.length
      jobs.start()
      await until(() => harness.diary.slice(began).includes('run build'))
      await jobs.stop()
      expect(jobs.find(id)!.status).toBe('running')
    }
    const last = harness.boot([{ name: 'build' }])
    last.start()
    await last.idle()
    expect(last.find(id)!.status).toBe('succeeded')
  })
})

describe('stopping in good order', () => {
  it('ends the running step through its signal, starts nothing, undoes nothing, and leaves the job to the next process', async () => {
    const jobs = harness.boot([{ name: 'a', run: untilStopped, undo: nothing }, { name: 'b' }])
    jobs.start()
    const id = jobs.enqueue(job('app:1'))
    const queued = jobs.enqueue(job('app:1'))
    await until(() => harness.diary.includes('run a'))
    await jobs.stop()
    expect(harness.ran()).toEqual(['run a'])
    expect([jobs.find(id)!.status, jobs.find(queued)!.status]).toEqual(['running', 'queued'])
    const later = jobs.enqueue(job('app:2'))
    expect(jobs.find(later)!.status).toBe('queued')
  })
  it('keeps a step that succeeded in that moment', async () => {
    let finish: () => void = () => undefined
    const jobs = harness.boot([
      { name: 'a', run: () => new Promise<void>((resolve) => (finish = resolve)) },
      { name: 'b' },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => harness.diary.includes('run a'))
    const stopped = jobs.stop()
    finish()
    await stopped
    expect(jobs.steps(id).map((step) => step.status)).toEqual(['succeeded', 'pending'])
    const after = harness.boot([{ name: 'a' }, { name: 'b' }])
    after.start()
    await after.idle()
    expect(harness.ran()).toEqual(['run a', 'run b'])
  })
  it('leaves half of its time to the rest of the process where a step does not listen, and counts it as in good order', async () => {
    vi.useFakeTimers()
    try {
      const jobs = harness.boot([{ name: 'a', run: hang }])
      jobs.start()
      const id = jobs.enqueue(job())
      await vi.advanceTimersByTimeAsync(0)
      let is_stopped = false
      void jobs.stop().then(() => (is_stopped = true))
      await vi.advanceTimersByTimeAsync(5_000)
      expect([is_stopped, jobs.find(id)!.resumes]).toEqual([true, -1])
    } finally {
      vi.useRealTimers()
    }
  })
  it('ends undoing as well, to go on with it later', async () => {
    const jobs = harness.boot([{ name: 'a', run: refuse, undo: untilStopped }])
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => harness.diary.includes('undo a'))
    await jobs.stop()
    expect(jobs.find(id)!.status).toBe('undoing')
  })
  it('ends undoing that a cancel began', async () => {
    const jobs = harness.boot([{ name: 'a', run: untilStopped, undo: untilStopped }])
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => harness.diary.includes('run a'))
    jobs.cancel(id)
    await until(() => harness.diary.includes('undo a'))
    await jobs.stop()
    expect(jobs.find(id)!.status).toBe('undoing')
    const after = harness.boot([{ name: 'a', undo: nothing }])
    after.start()
    await after.idle()
    expect(after.find(id)!.status).toBe('cancelled')
  })
})

describe('a database that cannot be written for a while', () => {
  it('loses no job: work goes on from where it stands once it can be written again, without a restart', async () => {
    const { db } = harness.kernel
    // Triggers refuse every write from the first step on, as a full disk would.
    let filled = false
    const fill = async () => {
      if (filled) return
      filled = true
      for (const table of ['jobs', 'job_steps'])
        db.raw.exec(
          `CREATE TRIGGER full_${table} BEFORE UPDATE ON ${table} BEGIN SELECT raise(ABORT, 'database or disk is full'); END`,
        )
    }
    const jobs = harness.boot([{ name: 'a', run: fill }, { name: 'b' }])
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => harness.kernel.lines.filter((line) => line.message === 'A job broke').length > 20)
    expect(harness.ran()).toEqual(['run a'])
    await until(() => jobs.fault()?.startsWith('Background jobs cannot be worked on now') === true)
    for (const table of ['jobs', 'job_steps']) db.raw.exec(`DROP TRIGGER full_${table}`)
    await jobs.idle()
    expect(jobs.fault()).toBeUndefined()
    expect(jobs.find(id)!.status).toBe('succeeded')
    expect(harness.ran()).toEqual(['run a', 'run a', 'run b'])
  })
  it('does not tell the user who queued a job that it failed, because it is queued', async () => {
    const jobs = harness.boot([{ name: 'a' }])
    const { db } = harness.kernel
    jobs.start()
    db.raw.exec(
      `CREATE TRIGGER full BEFORE UPDATE ON jobs BEGIN SELECT raise(ABORT, 'database or disk is full'); END`,
    )
    const id = jobs.enqueue(job())
    expect(jobs.find(id)!.status).toBe('queued')
    expect(jobs.fault()).toMatch(/^Background jobs cannot be worked on now/)
    db.raw.exec('DROP TRIGGER full')
    await jobs.idle()
    expect(jobs.find(id)!.status).toBe('succeeded')
    expect(jobs.fault()).toBeUndefined()
  })
})
