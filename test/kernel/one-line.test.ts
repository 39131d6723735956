import { expect, it } from 'vitest'
import { hasControl } from '#server/kernel/one-line'

it.each(['\n', '\u0000', '\u001b]8;;', '\u2028', '\u202e', '\u2066', '\u200f', '\u061c'])(
  'a name with %j would be shown as another one than it is',
  (mark) => expect(hasControl(`a${mark}b`)).toBe(true),
)
it('a name in letters that are read from the right may have the marks of their scripts', () =>
  expect(hasControl('\u05e9\u05dc\u05d5\u05dd\u200f (2) \u0645\u0631\u062d\u0628\u0627')).toBe(false))
it('letters of any language, and spaces, are fine', () =>
  expect(hasControl('Größe  שלום مرحبا 店 👩‍💻 <img>')).toBe(false))
