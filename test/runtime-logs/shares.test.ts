import { expect, it } from 'vitest'
import { createPrintShares } from '#server/runtime-logs/shares'

const MIB = 1024 * 1024

it('what instances print together is bounded, and a project that prints little is heard whatever others print', () => {
  let at = 0
  const shares = createPrintShares({ monotonic_ms: () => at })
  const print = (project_id: string): number => {
    let printed = 0
    for (; shares.isLeft(project_id); printed += MIB) shares.spend(project_id, MIB)
    return printed / MIB
  }
  // What is kept for the greedy one, and all that there is beside it.
  expect(print('prj_greedy')).toBe(16 + 64)
  expect(print('prj_other')).toBe(16)
  expect([shares.isLeft('prj_greedy'), shares.isLeft('prj_quiet')]).toEqual([false, true])
  at = 1_000
  expect(print('prj_greedy')).toBe(1 + 8)
  shares.spend('prj_quiet', 1_000)
  expect(shares.isLeft('prj_quiet')).toBe(true)
})
