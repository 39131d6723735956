import { describe, expect, it, vi } from 'vitest'
import { attempt } from '#server/kernel/jobs/attempt'
import { Later } from '#server/kernel/jobs/definition'
import { createPool } from '#server/kernel/jobs/pool'
import { createTenants } from '#server/kernel/jobs/tenants'
import { hang, job, nothing, refuse, until, untilStopped, useHarness } from './harness.ts'

const harness = useHarness()

describe('a failure', () => {
  it("that is the user's stops at once, undoes in reverse what began, and says what to do", async () => {
    const jobs = harness.boot([
      { name: 'a', undo: nothing },
      { name: 'b' },
      { name: 'c', run: refuse, undo: nothing },
      { name: 'd', undo: nothing },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(harness.ran()).toEqual(['run a', 'run b', 'run c', 'undo c', 'undo a'])
    expect(harness.diary.at(-1)).toBe('end failed')
    expect(JSON.parse(jobs.find(id)!.failure!)).toEqual({
      code: 'git_empty',
      message: 'The repository is empty.',
      hint: 'Push a commit.',
      step: 'c',
      log: [],
    })
    expect(jobs.steps(id).map((step) => step.status)).toEqual(['succeeded', 'succeeded', 'failed', 'pending'])
    expect(harness.pauses).toEqual([])
  })
  it("that is the system's is tried again with a growing back-off, and succeeds when it passes", async () => {
    let left = 2
    const jobs = harness.boot([
      {
        name: 'a',
        attempts: 3,
        run: async () => {
          if (left-- > 0) throw new Error('connection reset')
        },
      },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(harness.pauses).toEqual([500, 1000])
    expect(jobs.steps(id)[0]).toMatchObject({ status: 'succeeded', attempts: 3, duration_ms: 1500 })
  })
  it("that is the system's ends the job when the attempts are used up", async () => {
    const jobs = harness.boot([
      {
        name: 'a',
        attempts: 2,
        run: async () => {
          throw new Error('connection reset')
        },
      },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.steps(id)[0]).toMatchObject({ status: 'failed', attempts: 2 })
    expect(jobs.find(id)!.status).toBe('failed')
  })
  it('of something outside that is down is waited for, five minutes at most', async () => {
    let calls = 0
    const jobs = harness.boot([
      {
        name: 'a',
        attempts: 1,
        run: async () => {
          calls += 1
          throw Object.assign(new Error('the engine is down'), { kind: 'wait' })
        },
      },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.find(id)!.status).toBe('failed')
    expect(calls).toBeGreaterThan(20)
    const waited_ms = harness.pauses.reduce((sum, pause) => sum + pause, 0)
    expect(waited_ms).toBeGreaterThanOrEqual(300_000)
    expect(waited_ms).toBeLessThan(320_000)
  })
  it.each(['after work of an hour', 'after an hour in the queue for its place'])(
    'of something that goes down %s is waited for as well',
    async (when) => {
      const hour = () => harness.kernel.clock.advance(3_600_000)
      let calls = 0
      const jobs = harness.boot(
        [
          {
            name: 'a',
            pool: 'build',
            run: async () => {
              calls += 1
              if (calls > 3) return
              if (calls === 1 && when.startsWith('after work')) hour()
              throw Object.assign(new Error('the engine is down'), { kind: 'wait' })
            },
          },
        ],
        { onStep: (_job, _step, status) => void (status === 'running' && !when.includes('work') && hour()) },
      )
      jobs.start()
      const id = jobs.enqueue(job())
      await jobs.idle()
      expect([jobs.find(id)!.status, calls]).toEqual(['succeeded', 4])
    },
  )
  it('of something that goes down whenever the step has worked for long is not waited for without end', async () => {
    let calls = 0
    const jobs = harness.boot([
      {
        name: 'a',
        attempts: 3,
        run: async () => {
          calls += 1
          harness.kernel.clock.advance(3_600_000)
          throw Object.assign(new Error('the engine is down'), { kind: 'wait' })
        },
      },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect([jobs.find(id)!.status, calls]).toEqual(['failed', 4])
  })
  it('of an undo that needs what is down waits for it, five minutes for all steps, so that nothing is left behind', async () => {
    let calls = 0
    const down = async () => {
      calls += 1
      throw Object.assign(new Error('the engine is down'), { kind: 'wait' })
    }
    const jobs = harness.boot([
      { name: 'a', undo: async () => (calls < 40 ? down() : undefined) },
      { name: 'b', run: refuse, undo: async () => (calls < 12 ? down() : undefined) },
    ])
    jobs.start()
    jobs.enqueue(job())
    await jobs.idle()
    expect(harness.ran().filter((line) => line === 'undo b')).toHaveLength(13)
    expect(harness.pauses.reduce((sum, pause) => sum + pause, 0)).toBeLessThan(320_000)
    expect(harness.ran().filter((line) => line === 'undo a').length).toBeLessThan(30)
  })
  it('of an undo is one only once the time is over that its step asks for', async () => {
    let calls = 0
    const undo = async (context: { signal: AbortSignal }) => {
      calls += 1
      if (calls === 1) await untilStopped(context)
    }
    const jobs = harness.boot([{ name: 'a', run: refuse, undo, undo_timeout_ms: 10 }])
    jobs.start()
    jobs.enqueue(job())
    await jobs.idle()
    expect(calls).toBe(2)
  })
  it('of an undo is tried again, and does not keep the other steps from being undone', async () => {
    let calls = 0
    const jobs = harness.boot([
      { name: 'a', undo: nothing },
      {
        name: 'b',
        run: refuse,
        undo: async () => {
          calls += 1
          throw new Error('still in use')
        },
      },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(calls).toBe(5)
    expect(harness.ran().at(-1)).toBe('undo a')
    expect(jobs.find(id)!.status).toBe('failed')
  })
  it('of a step past the point of no return is recorded, and the job succeeds', async () => {
    const jobs = harness.boot([
      { name: 'switch', undo: nothing },
      { name: 'retire', irrevocable: true, run: refuse },
      { name: 'tidy', irrevocable: true },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(harness.ran()).toEqual(['run switch', 'run retire', 'run tidy'])
    expect(jobs.steps(id).map((step) => step.status)).toEqual(['succeeded', 'failed', 'succeeded'])
    expect(jobs.find(id)!.status).toBe('succeeded')
  })
})

describe('a step that is to begin anew later', () => {
  it('does so as often as it says, after the time it says, and leaves its place in the pool to others meanwhile', async () => {
    const pauses: number[] = []
    let proceed: () => void = () => undefined
    let attempts = 0
    const jobs = harness.boot(
      [
        {
          name: 'a',
          pool: 'build',
          attempts: 1,
          run: async ({ payload }) => {
            if ((payload as { subject: string }).subject !== 'patient') return
            if ((attempts += 1) < 5) throw new Later(60_000 * attempts)
          },
        },
      ],
      {
        options: {
          pause: (duration_ms) => {
            pauses.push(duration_ms)
            return new Promise((resolve) => (proceed = resolve))
          },
        },
      },
    )
    jobs.start()
    const patient = jobs.enqueue(job('app:1', 'patient'))
    await until(() => pauses.length === 1)
    const other = jobs.enqueue(job('app:2', 'other'))
    await until(() => jobs.find(other)!.status === 'succeeded')
    for (let n = 1; n < 5; n += 1) {
      await until(() => pauses.length === n)
      proceed()
    }
    await jobs.idle()
    expect([jobs.find(patient)!.status, pauses]).toEqual(['succeeded', [60_000, 120_000, 180_000, 240_000]])
    expect(harness.diary).not.toContain('a failed')
  })
  it('is cancelled while it waits', async () => {
    const jobs = harness.boot(
      [
        {
          name: 'a',
          run: async () => {
            throw new Later(60_000)
          },
          undo: nothing,
        },
      ],
      { options: { pause: (_ms, signal) => untilStopped({ signal }).catch(nothing) } },
    )
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => harness.ran().length === 1)
    jobs.cancel(id)
    await jobs.idle()
    expect([jobs.find(id)!.status, harness.ran()]).toEqual(['cancelled', ['run a', 'undo a']])
  })
})

describe('a time limit', () => {
  it('stops a step through its signal, says so, and does not try it again', async () => {
    const jobs = harness.boot([{ name: 'a', timeout_ms: 20, run: untilStopped, undo: nothing }])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(JSON.parse(jobs.find(id)!.failure!)).toMatchObject({
      code: 'timeout',
      step: 'a',
      message: 'The step «a» took longer than 0 seconds and was stopped.',
    })
    expect(harness.ran()).toEqual(['run a', 'undo a'])
  })
  it('does not count the time that a step waits for its turn', async () => {
    vi.useFakeTimers()
    try {
      const limits = {
        name: 'build',
        timeout_ms: 1000,
        pool: createPool(1, createTenants()),
        project_id: null,
        stop: new AbortController().signal,
      }
      const end_of_another = await limits.pool.acquire(limits.stop, null)
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
      const jobs = harness.boot([
        {
          name: 'a',
          timeout_ms: 1000,
          run: ({ payload }) =>
            (payload as { subject: string }).subject === 'deaf' ? hang() : Promise.resolve(),
        },
      ])
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
