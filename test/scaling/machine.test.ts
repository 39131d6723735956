import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sleepMachine } from '#server/scaling/machine'

test('the states of whether an app has instances are those that the documentation tells', () => {
  const text = readFileSync('docs/states.md', 'utf8')
  const rows = text
    .split('| Instances |')[1]!
    .split('\n\n')[0]!
    .matchAll(/^\| (\w+) \| (.+) \|$/gm)
  const documented = Object.fromEntries(
    [...rows].map(([, state, events]) => [
      state,
      Object.fromEntries(events!.split(', ').map((pair) => pair.split(': '))),
    ]),
  )
  expect(sleepMachine.transitions).toEqual(documented)
})
