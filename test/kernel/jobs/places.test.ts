import { describe, expect, it } from 'vitest'
import { countPlaces } from '#server/kernel/jobs/places'
import { Later } from '#server/kernel/jobs/definition'
import { job, until, untilStopped, useHarness } from './harness.ts'

const harness = useHarness()

/** Steps that end when the test says so, by the subject of their job. */
function doors() {
  const open = new Map<string, () => void>()
  const pass = ({ payload }: { payload: unknown }) =>
    new Promise<void>((resolve) => open.set((payload as { subject: string }).subject, resolve))
  return { open, pass }
}
const of = (project: string, name: string) => ({ ...job(`app:${name}`, name), project_id: `prj_${project}` })

describe('the places of jobs', () => {
  it('are not taken by those that wait for a pool, of however many projects', async () => {
    const { open, pass } = doors()
    const jobs = harness.boot([{ name: 'a', pool: 'build', run: pass }], { options: { max_running: 4 } })
    jobs.define({ kind: 'deploy', steps: [{ name: 'a', run: pass }], initial: () => ({}), classify: never })
    jobs.start()
    for (let n = 0; n < 4; n += 1)
      for (const project of ['eve', 'mallory']) jobs.enqueue(of(project, `${project}${n}`))
    await until(() => open.has('eve0'))
    jobs.enqueue({ ...of('ada', 'ada'), kind: 'deploy' })
    await until(() => open.has('ada'))
    expect([...open.keys()]).toEqual(['eve0', 'ada'])
  })

  it('are not taken by those that wait for their time, of however many projects', async () => {
    const { open, pass } = doors()
    const waiting: unknown[] = []
    const pause = (duration_ms: number, signal: AbortSignal) => {
      waiting.push(duration_ms)
      return untilStopped({ signal }).catch(() => undefined)
    }
    const later = async () => {
      throw new Later(3_600_000)
    }
    const jobs = harness.boot([{ name: 'a', run: later }], { options: { max_running: 4, pause } })
    jobs.define({ kind: 'deploy', steps: [{ name: 'a', run: pass }], initial: () => ({}), classify: never })
    jobs.start()
    for (let n = 0; n < 4; n += 1)
      for (const project of ['eve', 'mallory']) jobs.enqueue(of(project, `${project}${n}`))
    await until(() => waiting.length >= 4)
    jobs.enqueue({ ...of('ada', 'ada'), kind: 'deploy' })
    await until(() => open.has('ada'))
  })

  it('are left by a step that only waits for somebody else, and so is its place in the pool', async () => {
    const { open, pass } = doors()
    const jobs = harness.boot(
      [
        {
          name: 'a',
          pool: 'build',
          run: (context) => {
            context.leavePlace()
            return pass(context)
          },
        },
      ],
      { options: { max_running: 2 } },
    )
    jobs.start()
    for (const name of ['ada', 'eve', 'bob']) jobs.enqueue(of(name, name))
    await until(() => open.size === 3)
    for (const end of open.values()) end()
    await jobs.idle()
    expect(harness.diary.filter((line) => line === 'end succeeded')).toHaveLength(3)
  })

  it('are kept for projects that have none while a few have as many as they may have', async () => {
    const { open, pass } = doors()
    const jobs = harness.boot([{ name: 'a', run: pass }], { options: { max_running: 8 } })
    jobs.start()
    for (let n = 0; n < 9; n += 1)
      for (const project of ['eve', 'mallory']) jobs.enqueue(of(project, `${project}${n}`))
    await until(() => open.size === 6)
    jobs.enqueue(of('ada', 'ada'))
    await until(() => open.has('ada'))
    expect(open.size).toBe(7)
  })
})

it('those of a project that wait do not keep its own work from beginning, up to a number', () => {
  const waiting = (count: number) =>
    Array.from({ length: count }, () => ({ project_id: 'prj_ada', isWaiting: () => true }))
  const tenants = { others: () => true }
  expect(countPlaces(4, tenants, waiting(15)).isFull('prj_ada')).toBe(false)
  expect(countPlaces(4, tenants, waiting(16)).isFull('prj_ada')).toBe(true)
})

it('a project that has nothing under way may begin, however much of others waits, and the others begin no more', () => {
  const waiting = Array.from({ length: 40 }, (_, at) => ({
    project_id: `prj_${at % 20}`,
    isWaiting: () => true,
  }))
  const places = countPlaces(4, { others: () => true }, waiting)
  expect([places.isFull('prj_0'), places.isFull('prj_ada')]).toEqual([false, false])
  for (const occupant of waiting.slice(0, 24))
    places.add({ ...occupant, project_id: `${occupant.project_id}x` })
  expect([places.isFull('prj_0'), places.isFull('prj_ada'), places.free()]).toEqual([true, false, 4])
})

const never = (error: unknown): never => {
  throw error
}
