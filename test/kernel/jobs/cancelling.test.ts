import { createJobRepository } from '#server/kernel/jobs/repository'
import { describe, expect, it } from 'vitest'
import { hang, job, nothing, refuse, until, untilStopped, useHarness } from './harness.ts'

const harness = useHarness()

describe('cancelling', () => {
  it('a queued job ends it at once, in the same transaction, without running anything', () => {
    const jobs = harness.boot([{ name: 'a' }])
    const id = jobs.enqueue(job())
    expect(jobs.cancel(id)).toBe(true)
    expect(jobs.find(id)!.status).toBe('cancelled')
    expect(harness.diary).toEqual(['end cancelled'])
    expect(jobs.cancel(id)).toBe(false)
  })
  it('lets a newer job supersede the queued ones before it', async () => {
    const jobs = harness.boot([{ name: 'a' }])
    const older = [jobs.enqueue(job('app:1', 'dep_1')), jobs.enqueue(job('app:1', 'dep_2'))]
    const newest = harness.kernel.db.tx(() => {
      for (const id of older) jobs.cancel(id)
      return jobs.enqueue(job('app:1', 'dep_3'))
    })
    jobs.start()
    await jobs.idle()
    expect([...older, newest].map((id) => jobs.find(id)!.status)).toEqual([
      'cancelled',
      'cancelled',
      'succeeded',
    ])
    expect(harness.ran()).toEqual(['run a'])
  })
  it('a running job reaches the step through its signal and undoes it', async () => {
    const jobs = harness.boot([
      { name: 'a', undo: nothing },
      { name: 'b', run: untilStopped, undo: nothing },
      { name: 'c' },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await until(() => harness.diary.includes('run b'))
    expect(jobs.cancel(id)).toBe(true)
    await jobs.idle()
    expect(harness.ran()).toEqual(['run a', 'run b', 'undo b', 'undo a'])
    expect(harness.diary).toContain('b cancelled')
    expect(jobs.find(id)).toMatchObject({ status: 'cancelled', failure: null })
  })
  it('between two steps runs nothing more, and the next is recorded as cancelled', async () => {
    const jobs = harness.boot(
      [
        { name: 'a', undo: nothing },
        { name: 'b', undo: nothing },
      ],
      {
        onStep(row, step, status) {
          harness.diary.push(`${step} ${status}`)
          if (step === 'a' && status === 'succeeded')
            harness.kernel.db.afterCommit(() => void jobs.cancel(row.id))
        },
      },
    )
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(harness.diary.filter((line) => line === 'run b')).toEqual([])
    expect(harness.diary.slice(-1)).toEqual(['end cancelled'])
    expect(jobs.steps(id).map(({ status }) => status)).toEqual(['succeeded', 'cancelled'])
  })
  it('is heard while a step waits for its turn in a pool', async () => {
    let release: () => void = () => undefined
    const jobs = harness.boot([
      {
        name: 'build',
        pool: 'build',
        run: () => new Promise<void>((resolve) => (release = resolve)),
      },
    ])
    jobs.start()
    const first = jobs.enqueue(job('app:1', 'first'))
    const second = jobs.enqueue(job('app:2', 'second'))
    await until(() => jobs.find(second)!.status === 'running')
    jobs.cancel(second)
    await until(() => jobs.find(second)!.status === 'cancelled')
    expect(jobs.find(first)!.status).toBe('running')
    release()
    await jobs.idle()
    expect(harness.ran()).toEqual(['run build'])
  })
  it('is heard while a failed step waits for its next attempt', async () => {
    const jobs = harness.boot(
      [
        {
          name: 'a',
          attempts: 3,
          run: async () => {
            throw new Error('connection reset')
          },
        },
      ],
      {
        options: {
          pause: (_ms, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
        },
      },
    )
    jobs.start()
    const id = jobs.enqueue(job())
    await until(
      () =>
        harness.ran().length === 1 &&
        harness.kernel.lines.some((line) => line.message === 'A step is tried again'),
    )
    jobs.cancel(id)
    await jobs.idle()
    expect(jobs.find(id)!.status).toBe('cancelled')
    expect(harness.ran()).toEqual(['run a'])
  })
  it('counts even when the step ends well in the same moment', async () => {
    const jobs = harness.boot([
      { name: 'a', run: async ({ job_id }) => void jobs.cancel(job_id), undo: nothing },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect(jobs.find(id)!.status).toBe('cancelled')
    expect(harness.ran()).toEqual(['run a', 'undo a'])
  })
  it('is refused past the point of no return, and while undoing', async () => {
    const answers: boolean[] = []
    const jobs = harness.boot([
      { name: 'a', undo: nothing },
      {
        name: 'b',
        irrevocable: true,
        run: async ({ job_id }) => void answers.push(jobs.cancel(job_id)),
      },
    ])
    jobs.start()
    const id = jobs.enqueue(job())
    await jobs.idle()
    expect([answers, jobs.find(id)!.status]).toEqual([[false], 'succeeded'])

    const other = harness.boot([
      {
        name: 'a',
        run: refuse,
        undo: async ({ job_id }) => void answers.push(other.cancel(job_id)),
      },
    ])
    other.start()
    const failed = other.enqueue(job())
    await other.idle()
    expect([answers, other.find(failed)!.status]).toEqual([[false, false], 'failed'])
  })
  it('survives a crash that comes before the job could react', async () => {
    const before = harness.boot([{ name: 'a', run: hang, undo: nothing }])
    before.start()
    const id = before.enqueue(job())
    await until(() => harness.diary.includes('run a'))
    createJobRepository(harness.kernel.db).requestCancel(id)
    const after = harness.boot([{ name: 'a', undo: nothing }])
    after.start()
    await after.idle()
    expect(after.find(id)!.status).toBe('cancelled')
    expect(harness.ran()).toEqual(['run a', 'undo a'])
  })
})
