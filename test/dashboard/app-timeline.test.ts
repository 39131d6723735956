import { describe, expect, it } from 'vitest'
import { aboutOf, foldSteps } from '@/features/apps/timeline'

let number = 0
const step = (deployment_id: string, name: string, step_status: string) => ({
  id: `evt_${++number}`,
  type: 'deployment.step',
  deployment_id,
  payload: { step: name, step_status },
})
const event = (type: string) => ({ id: `evt_${++number}`, type, deployment_id: null, payload: {} })
const shown = (rows: ReturnType<typeof foldSteps<ReturnType<typeof step>>>) =>
  rows.map(({ deployment_id, payload }) => `${deployment_id} ${payload.step} ${payload.step_status}`)

describe('the events of an app, newest first', () => {
  it('have one row per step of a deployment, with its outcome in place of its beginning', () => {
    const rows = [
      step('dep_2', 'build', 'running'),
      step('dep_2', 'clone', 'succeeded'),
      step('dep_2', 'clone', 'running'),
      step('dep_1', 'clone', 'failed'),
      step('dep_1', 'clone', 'running'),
    ]
    expect(shown(foldSteps(rows, 1))).toEqual([
      'dep_2 build running',
      'dep_2 clone succeeded',
      'dep_1 clone failed',
    ])
  })
  it('replace what was shown of a step when its end is told', () => {
    const began = [step('dep_1', 'build', 'running')]
    const ended = step('dep_1', 'build', 'failed')
    expect(foldSteps(began, 1)).toEqual(began)
    expect(foldSteps([ended, ...began], 1)).toEqual([ended])
  })
  it('do not begin a step again on a later page, whose outcome is on the page before', () => {
    const rows = [step('dep_1', 'build', 'running'), step('dep_1', 'clone', 'succeeded')]
    expect(shown(foldSteps(rows, 2))).toEqual(['dep_1 clone succeeded'])
  })
  it('leave everything else as it is', () => {
    const rows = [event('app.crashed'), event('app.crashed'), event('deployment.live')]
    expect(foldSteps(rows, 2)).toEqual(rows)
  })
})

describe('what an event of an app is about', () => {
  const app = { app_id: 'app_1', name: 'shop', status: 'running' }
  const about = (type: string, payload: Record<string, unknown>) => aboutOf('shop', { type, payload })
  it('is why it sleeps, and never that it runs', () => {
    const detail = 'Nobody asked for it for 300 s.'
    expect(about('app.asleep', { ...app, reason: 'idle', detail, from: 1, to: 0 })).toBe(detail)
    expect(about('app.woken', { ...app, to: 1, waited_ms: 20 })).toBe('')
    expect(about('app.scaling_finished', { ...app, serving: 0 })).toBe('')
  })
  it('is why a deployment failed', () => {
    const error = 'The branch "x" does not exist in the repository.'
    expect(about('deployment.failed', { app_id: 'app_1', status: 'failed', error })).toBe(error)
  })
  it('is what it changed, or the other thing that it names', () => {
    expect(about('env.changed', { added: ['A'], removed: ['B', 'C'] })).toBe('added A; removed B, C')
    expect(about('domain.created', { status: 'pending', hostname: 'a.test' })).toBe('pending: a.test')
    expect(about('deployment.step', { step: 'clone', step_status: 'failed', error: 'No.' })).toBe(
      'Clone failed: No.',
    )
  })
})
