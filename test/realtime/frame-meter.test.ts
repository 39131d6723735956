import { expect, it } from 'vitest'
import { createFrameMeter } from '#server/realtime/frame-meter'
import { randomOf } from '#test/support/random'

/** A frame of a client with so many bytes in it. */
function frame(first: number, size: number): Buffer {
  const long = Buffer.alloc(8)
  long.writeBigUInt64BE(BigInt(size))
  if (size < 126) return Buffer.concat([Buffer.from([first, 0x80 | size]), Buffer.alloc(4 + size, 0xff)])
  const [mark, bytes] = size < 65_536 ? [126, long.subarray(6)] : [127, long]
  return Buffer.concat([Buffer.from([first, 0x80 | mark]), bytes, Buffer.alloc(4 + size, 0xff)])
}

it('frames of any kind and size are counted once, in whatever pieces they come that are not small', () => {
  const sizes = [0, 0, 1, 125, 126, 127, 65_535, 65_536, 70_000, 0, 5]
  const all = Buffer.concat(sizes.map((size, n) => frame(n % 2 ? 0x89 : 0x00, size)))
  const random = randomOf(7)
  for (let round = 0; round < 20; round += 1) {
    const { count } = createFrameMeter()
    let frames = 0
    for (let at = 0; at < all.length; ) {
      const piece = all.subarray(at, at + 512 + random.below(round < 10 ? 2_000 : 40_000))
      frames += count(piece)
      at += piece.length
    }
    expect(frames).toBe(sizes.length)
  }
})

it('each piece of one byte counts, whatever begins in it', () => {
  const { count } = createFrameMeter()
  const all = frame(0x81, 60_000)
  let frames = 0
  for (let at = 0; at < all.length; at += 1) frames += count(all.subarray(at, at + 1))
  expect(frames).toBe(all.length)
})
it('tells whether there is more to come of a message, also between its parts and behind a ping', () => {
  const meter = createFrameMeter()
  const said: [Buffer, boolean][] = [
    [frame(0x81, 5), false],
    [frame(0x81, 200).subarray(0, 1), true],
    [frame(0x81, 200).subarray(1, 100), true],
    [frame(0x81, 200).subarray(100), false],
    [frame(0x01, 5), true],
    [frame(0x89, 5), true],
    [frame(0x00, 300), true],
    [frame(0x80, 0), false],
    [frame(0x8a, 20), false],
  ]
  for (const [piece, is_open] of said) {
    meter.count(piece)
    expect(meter.is_open).toBe(is_open)
  }
})
