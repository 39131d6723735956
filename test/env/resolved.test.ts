import { expect, it } from 'vitest'
import { type ReleaseVariable, variableDifferences } from '#server/env/resolved'
import { MASK } from '#server/kernel/schemas'

const one = (value: string, secret = false): ReleaseVariable => ({
  value,
  secret,
  build: true,
  runtime: true,
})

it('what differs between two releases shows no value of what is or was a secret in either of them', () => {
  const before = { OPENED: one('was secret', true), CLOSED: one('was plain'), GONE: one('gone secret', true) }
  const after = { OPENED: one('is plain'), CLOSED: one('is secret', true), NEW: one('new secret', true) }
  const told = variableDifferences({ ...before, PLAIN: one('a') }, { ...after, PLAIN: one('b') })
  expect(told).toEqual([
    { key: 'CLOSED', before: MASK, after: MASK, secret: true },
    { key: 'GONE', before: MASK, after: null, secret: true },
    { key: 'NEW', before: null, after: MASK, secret: true },
    { key: 'OPENED', before: MASK, after: MASK, secret: true },
    { key: 'PLAIN', before: 'a', after: 'b', secret: false },
  ])
})
