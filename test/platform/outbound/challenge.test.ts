import { expect, it } from 'vitest'
import { parseChallenge } from '#server/platform/outbound/challenge'

it('a challenge is read into its parts', () => {
  expect(parseChallenge('Bearer realm="https://auth.example.com/token",Service="a b"')).toEqual({
    scheme: 'bearer',
    parameters: { realm: 'https://auth.example.com/token', service: 'a b' },
  })
})

it('a challenge of a word without end is none', () => {
  expect(parseChallenge(`Bearer ${'a'.repeat(1_000_000)}`).parameters).toEqual({})
})
