import { describe, expect, it } from 'vitest'
import { countStates } from '../../dashboard/src/features/overview/state-counts.ts'

describe('the counts of states', () => {
  const data = (['failed', 'running', 'running'] as const).map((status) => ({ status }))
  it('are those of the list where it holds all apps', async () => {
    const refuse = () => Promise.reject(new Error('was asked'))
    expect(await countStates({ data, pages: 1 }, refuse)).toEqual([
      ['running', 2],
      ['failed', 1],
    ])
  })
  it('are those of all apps where the list holds only some', async () => {
    const totals: Record<string, number> = { running: 340, stopped: 3 }
    const counts = await countStates({ data, pages: 4 }, (state) => Promise.resolve(totals[state] ?? 0))
    expect(counts).toEqual([
      ['running', 340],
      ['stopped', 3],
    ])
  })
})
