import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { volumeMachine } from '#server/volumes/machine'

test('the states of a volume are those that the documentation tells', () => {
  const text = readFileSync('docs/states.md', 'utf8')
  const rows = text
    .split('| Volume status |')[1]!
    .split('\n\n')[0]!
    .matchAll(/^\| (\w+) \| (.+) \|$/gm)
  const documented = Object.fromEntries(
    [...rows].map(([, state, events]) => [
      state,
      Object.fromEntries(events!.split(', ').map((pair) => pair.split(': '))),
    ]),
  )
  expect(volumeMachine.transitions).toEqual(documented)
})
