import { describe, expect, it } from 'vitest'
import { type Candidate, chooseServer } from '#server/nodes/scheduler'

const own = (promised_bytes: number): Candidate => ({ node_id: null, memory_bytes: 100, promised_bytes })
const at = (node_id: string, promised_bytes: number, memory_bytes = 100): Candidate => ({
  node_id,
  memory_bytes,
  promised_bytes,
})
const choose = (candidates: Candidate[], current?: string | null, needs_bytes = 10) =>
  chooseServer(candidates, { needs_bytes, current })

describe('the server for a release', () => {
  it('is the one with the largest share of memory that is promised to nobody', () => {
    expect(choose([own(50), at('a', 40), at('b', 30)])).toBe('b')
    expect(choose([own(50), at('large', 400, 1000), at('small', 30, 60)])).toBe('large')
  })
  it('is the first one where all are alike', () => {
    expect(choose([at('a', 20), at('b', 20), own(20)])).toBe('a')
    expect(choose([own(99)])).toBeNull()
  })
  it('has room for it, where one has', () => {
    expect(choose([own(40), at('a', 4, 12)], undefined, 20)).toBeNull()
    expect(choose([own(95), at('a', 99)], undefined, 20)).toBeNull()
  })
  it('stays the one that the app is on, while another one is not much emptier', () => {
    expect(choose([own(50), at('a', 60)], 'a')).toBe('a')
    expect(choose([own(50), at('a', 60)], null)).toBeNull()
    expect(choose([own(10), at('a', 60)], 'a')).toBeNull()
    expect(choose([own(50), at('b', 60)], 'gone')).toBeNull()
  })
  it('is another one than that of the app when that has no room', () => {
    expect(choose([own(85), at('a', 95)], 'a')).toBeNull()
  })
})
