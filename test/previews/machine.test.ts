import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { previewMachine } from '#server/previews/machine'

it('the states of a preview are those that the documentation tells, with no event more or less', () => {
  const table = readFileSync('docs/states.md', 'utf8').split('| Preview status |')[1]!.split('\n\n')[0]!
  const rows = table
    .split('\n')
    .slice(2)
    .filter((line) => line.startsWith('|'))
  const told = Object.fromEntries(
    rows.map((line) => {
      const [, status = '', events = ''] = line.split('|').map((cell) => cell.trim())
      return [
        status,
        Object.fromEntries(
          events
            .split(', ')
            .filter(Boolean)
            .map((event) => event.split(': ')),
        ),
      ]
    }),
  )
  expect(told).toEqual(previewMachine.transitions)
})
