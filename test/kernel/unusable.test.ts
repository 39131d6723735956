import { describe, expect, it } from 'vitest'
import { unusable } from '#server/kernel/unusable'

describe('what cannot be kept as it was given', () => {
  it.each([
    ['in a text', { env: [{ value: 'a\ud800b' }] }, 'env.0.value'],
    ['at the end of a text', { name: '\udc00' }, 'name'],
    ['in a name', { labels: { 'a\udbff': 'x' } }, 'labels.a\ufffd'],
  ])('is half of a character %s', (_, value, path) =>
    expect(unusable(value)).toEqual({
      path,
      reason: 'holds half of a character (a surrogate without its other half).',
    }),
  )
  it('is a name that dictionaries of a schema pass over', () =>
    expect(unusable({ labels: { constructor: 'x' } })?.path).toBe('labels.constructor'))
  it('is none of whole characters, whatever they are', () =>
    expect(unusable({ a: ['😀', '\u0000\u202e\u200b\ufeff\uffff', 1, null], toString: 'x' })).toBeUndefined())
})
