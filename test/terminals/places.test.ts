import { expect, it } from 'vitest'
import type { Actor } from '#server/kernel/access'
import { createPlaces, type Holder } from '#server/terminals/places'

const clock = { monotonic_ms: () => 0 }
const actor = (user_id: string) => ({ user_id, role: 'member' }) as Actor
/** Opens terminals of a user in a project for as long as there are places; answers how many there were. */
function fill(held: Holder[], user_id: string, project_id: string): number {
  const places = createPlaces(clock)
  const before = held.length
  try {
    for (;;) {
      places.take(actor(user_id), project_id, held)
      held.push({ user_id, project_id })
    }
  } catch {
    return held.length - before
  }
}

it('one project does not take the places of others, whoever opens terminals in it', () => {
  const held: Holder[] = []
  for (const user of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) fill(held, user, 'prj_1')
  expect(held).toHaveLength(16)
  expect(fill(held, 'z', 'prj_2')).toBe(8)
})

it('whoever has no terminal gets one where others have opened as many as they may in many projects', () => {
  const held: Holder[] = []
  for (let n = 0; n < 20; n += 1) fill(held, `user ${n % 6}`, `prj_${n}`)
  expect(held.length).toBeGreaterThanOrEqual(40)
  expect(fill(held, 'z', 'prj_other')).toBe(1)
})
