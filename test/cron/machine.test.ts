import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { runMachine } from '#server/cron/machine'

it('the states of a run are those that the documentation tells, and one that has ended stays as it is', () => {
  const [, section = ''] = readFileSync('docs/states.md', 'utf8').split('| Cron run status |')
  const rows = section
    .split('\n\n')[0]!
    .split('\n')
    .slice(2)
    .map((row) => row.split('|').map((cell) => cell.trim()))
  for (const [, state = '', events = ''] of rows)
    expect([
      state,
      Object.entries(runMachine.transitions[state as 'queued'])
        .map((pair) => pair.join(': '))
        .join(', '),
    ]).toEqual([state, events])
  expect(rows).toHaveLength(Object.keys(runMachine.transitions).length)
  expect(() => runMachine.next('failed', 'start')).toThrow('Cannot start a run while it is failed.')
})
