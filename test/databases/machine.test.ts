import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { databaseMachine } from '#server/databases/machine'

describe('the statuses of a database', () => {
  it('are those that the documentation tells, with no event more or less', () => {
    const text = readFileSync('docs/states.md', 'utf8')
    const table = text.split('| Database status |')[1]!.split('\n\n')[0]!
    const rows = table.split('\n').filter((line) => /^\| [a-z]+ \|/.test(line))
    const documented = Object.fromEntries(
      rows.map((row) => {
        const [, state = '', events = ''] = row.split('|').map((cell) => cell.trim())
        return [state, Object.fromEntries(events.split(', ').map((pair) => pair.split(': ')))]
      }),
    )
    expect(databaseMachine.transitions).toEqual(documented)
  })
})
