import { describe, expect, it } from 'vitest'
import { foldSteps } from '@/features/apps/timeline'

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
