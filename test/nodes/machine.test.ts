import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { nodeMachine } from '#server/nodes/machine'

it('the states of a server are those that the documentation tells', () => {
  const [, section = ''] = readFileSync('docs/states.md', 'utf8').split('| Server status |')
  const rows = section
    .trimEnd()
    .split('\n\n')[0]!
    .split('\n')
    .slice(2)
    .map((row) => row.split('|').map((cell) => cell.trim()))
  for (const [, state = '', events = ''] of rows)
    expect([
      state,
      Object.entries(nodeMachine.transitions[state as 'ready'])
        .map((pair) => pair.join(': '))
        .join(', '),
    ]).toEqual([state, events])
  expect(rows).toHaveLength(Object.keys(nodeMachine.transitions).length)
})
