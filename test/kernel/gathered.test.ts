import { expect, it } from 'vitest'
import { gathered } from '#server/kernel/gathered'
import { randomOf } from '#test/support/random'

it('gives back all bytes in their order, whatever pieces they came in', () => {
  const random = randomOf(11)
  for (let round = 0; round < 50; round += 1) {
    const pieces = Array.from({ length: random.below(40) }, () =>
      Buffer.alloc(random.below(9_000), random.below(256)),
    )
    const all = gathered()
    for (const piece of pieces) all.add(piece)
    expect(all.bytes().equals(Buffer.concat(pieces))).toBe(true)
  }
})
it('keeps no piece: each is an object that may be larger than what is in it', () => {
  const piece = Buffer.from('abc')
  const all = gathered()
  all.add(piece)
  piece.fill('x')
  expect(all.bytes().toString()).toBe('abc')
})
