import { expect, it } from 'vitest'
import { hasControl } from '#server/kernel/one-line'

it.each(['\n', '\u0000', '\u001b]8;;', '\u2028', '\u202e', '\u2066'])(
  'a name with %j would be shown as another one than it is',
  (mark) => expect(hasControl(`a${mark}b`)).toBe(true),
)
it('letters of any language, and spaces, are fine', () =>
  expect(hasControl('Größe  שלום مرحبا 店 👩‍💻 <img>')).toBe(false))
