import { expect, it } from 'vitest'
import { createHeldBytes } from '#server/kernel/held-bytes'

const KIB = 1024
const refusalOf = (work: () => void) => {
  try {
    work()
  } catch (error) {
    return (error as { code: string }).code
  }
  return undefined
}

it('an owner has a share, all together have a limit, and what was released is free again', () => {
  const held = createHeldBytes({ of_one: 100 * KIB, of_all: 150 * KIB, refusal: 'Too many.' })
  const [one, more, other] = [held.open('one'), held.open('one'), held.open('other')]
  // The first 16 KiB of each are free.
  expect(refusalOf(() => one.hold(116 * KIB))).toBeUndefined()
  expect(refusalOf(() => more.hold(16 * KIB))).toBeUndefined()
  expect(refusalOf(() => more.hold(1))).toBe('RATE_LIMITED')
  more.release()
  expect(refusalOf(() => other.hold(66 * KIB))).toBeUndefined()
  expect(refusalOf(() => other.hold(1))).toBe('RATE_LIMITED')
  one.release()
  expect(refusalOf(() => other.hold(1))).toBeUndefined()
  other.release()
  // Twice is as good as once.
  other.release()
  expect(refusalOf(() => held.open('other').hold(116 * KIB))).toBeUndefined()
})

it('what is there already is counted, too much or not, and then nothing large has room beside it', () => {
  const held = createHeldBytes({ of_one: 100 * KIB, of_all: 150 * KIB, refusal: 'Too many.' })
  const share = held.open('one')
  expect(refusalOf(() => held.requireRoom('one'))).toBeUndefined()
  share.count(200 * KIB)
  expect(refusalOf(() => held.requireRoom('one'))).toBe('RATE_LIMITED')
  expect(refusalOf(() => held.requireRoom('one', 16 * KIB))).toBeUndefined()
  // One who holds nothing has room, whatever others hold.
  expect(refusalOf(() => held.requireRoom('other'))).toBeUndefined()
  share.release()
  expect(refusalOf(() => held.requireRoom('one'))).toBeUndefined()
})
