import { expect, it } from 'vitest'
import { envOf, textOf } from '@/features/previews/env-text'

it('variables of previews come back from their text as they were, whatever is in them', () => {
  const env = {
    PLAIN: 'preview',
    EMPTY: '',
    HASH: 'a # b',
    SPACES: '  two  ',
    LINES: 'one\ntwo',
    QUOTED: '"it\'s"',
    BACKTICK: '`a` "b"',
    SECRET: '********',
    BACKSLASH: 'C:\\new',
  }
  expect(envOf(textOf(env))).toEqual({ env })
})
it('one that no quotes hold is masked, which leaves it as it is', () => {
  expect(textOf({ ALL: '\'"`#' })).toBe('ALL=********')
})
it('a line that is no variable is told, so that none is lost without a word', () => {
  expect(envOf('A=1\nno variable\nB=2').fault).toBe('Line 2 is neither NAME=value nor a comment.')
})
