import { expect, it } from 'vitest'
import { firstBytes } from '#server/kernel/first-bytes'

async function* pieces(asked: string[], ...texts: string[]) {
  for (const text of texts) {
    asked.push(text)
    yield Buffer.from(text)
  }
}

it('of what is longer than asked for comes the beginning, and nothing after that is waited for', async () => {
  const asked: string[] = []
  const { bytes, truncated } = await firstBytes(pieces(asked, 'abc', 'def', 'never'), 5)
  expect([bytes.toString(), truncated, asked]).toEqual(['abcde', true, ['abc', 'def']])
})

it('what fits comes whole', async () => {
  const { bytes, truncated } = await firstBytes(pieces([], 'abc', 'de'), 5)
  expect([bytes.toString(), truncated]).toEqual(['abcde', false])
})
