import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { certificateMachine } from '#server/certificates/machine'

it('the states of a certificate are those that the documentation tells, with no event more or less', () => {
  const table = readFileSync('docs/states.md', 'utf8').split('| Certificate status |')[1]!.split('\n\n')[0]!
  const rows = table
    .split('\n')
    .slice(2)
    .map((row) => row.split('|').map((cell) => cell.trim()))
  const documented = Object.fromEntries(
    rows.map(([, state = '', events = '']) => [
      state,
      Object.fromEntries(
        events
          .split(', ')
          .filter(Boolean)
          .map((pair) => pair.split(': ')),
      ),
    ]),
  )
  expect(documented).toEqual(certificateMachine.transitions)
  expect(() => certificateMachine.next('revoked', 'issue')).toThrow(
    'Cannot issue a certificate while it is revoked.',
  )
})
