import { expect, it } from 'vitest'
import { atMost } from '#server/kernel/at-most'

let closed = false
async function* three() {
  try {
    for (let n = 0; n < 3; n += 1) yield Buffer.alloc(10)
  } finally {
    closed = true
  }
}
const read = async (most: number) => {
  let size = 0
  for await (const chunk of atMost(most, three(), () => new Error('too long'))) size += chunk.length
  return size
}

it('a stream that is as long as it may be comes whole', async () => {
  expect(await read(30)).toBe(30)
})

it('a stream that goes on is ended with the fault of its reader, and its source is closed', async () => {
  closed = false
  await expect(read(29)).rejects.toThrow('too long')
  expect(closed).toBe(true)
})
