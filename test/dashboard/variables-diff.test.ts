import { describe, expect, it } from 'vitest'
import { unreadable, unrevealed } from '#server/env/unrevealed'
import { unwritable } from '#server/kernel/dotenv'
import { diffText, readText } from '../../dashboard/src/features/variables/diff.ts'

const known = [
  { key: 'MODE', value: 'live' },
  { key: 'TOKEN', value: undefined },
]

describe('the preview of a text of variables', () => {
  it('tells what is new and what changes, and nothing else', () => {
    expect(diffText('MODE=test\nNEW=1\n', known, false)).toEqual([
      { key: 'MODE', kind: 'changed' },
      { key: 'NEW', kind: 'added' },
    ])
  })
  it('tells what goes only when the text replaces all', () => {
    expect(diffText('MODE=live', known, false)).toEqual([])
    expect(diffText('MODE=live', known, true)).toEqual([{ key: 'TOKEN', kind: 'removed' }])
  })
  it('leaves a masked secret as it is', () => {
    expect(diffText('MODE=live\nTOKEN=********', known, true)).toEqual([])
  })
  it.each([unrevealed, unreadable, unwritable])('leaves what an export only names as it is', (remark) => {
    expect(diffText(`MODE=live\n${remark('TOKEN')}\n`, known, true)).toEqual([])
  })
  it('reads quotes, comments, export and values of several lines', () => {
    const text = 'export A="one\\ntwo" \n# a comment\nB=plain # words\nC="first\nsecond"\nD=\'x=y\'\n'
    expect([...readText(text)]).toEqual([
      ['A', 'one\ntwo'],
      ['B', 'plain'],
      ['C', 'first\nsecond'],
      ['D', 'x=y'],
    ])
  })
})
