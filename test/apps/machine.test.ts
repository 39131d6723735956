import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { appMachine } from '#server/apps/machine'
import { deploymentMachine } from '#server/deployments/machine'
import type { AppStatus } from '#server/apps/schema'

/** The table of the documentation as `state -> event -> state`. */
function documented(): Record<string, Record<string, string>> {
  const text = readFileSync('docs/states.md', 'utf8')
  const table = text.split('| App status |')[1]!.split('\n\n')[0]!
  const rows = table.split('\n').filter((line) => /^\| [a-z]+ \|/.test(line))
  return Object.fromEntries(
    rows.map((row) => {
      const [, state = '', events = ''] = row.split('|').map((cell) => cell.trim())
      return [state, Object.fromEntries(events.split(', ').map((pair) => pair.split(': ')))]
    }),
  )
}

describe('the states of an app', () => {
  it('are those that the documentation tells, with no event more or less', () => {
    expect(appMachine.transitions).toEqual(documented())
  })

  it('refuse every other event with 409 and a sentence', () => {
    const events = new Set(Object.values(documented()).flatMap((row) => Object.keys(row)))
    const refused = Object.keys(documented()).flatMap((state) =>
      [...events].filter((event) => !(event in documented()[state]!)).map((event) => [state, event] as const),
    )
    expect(refused.length).toBeGreaterThan(10)
    for (const [state, event] of refused) {
      expect(() => appMachine.next(state as AppStatus, event as 'stop')).toThrow(
        `Cannot ${event.replaceAll('_', ' ')} an app while it is ${state}.`,
      )
    }
  })
})

describe('the states of a deployment', () => {
  it('lead back from a live one to the one that it replaced, and nowhere else from there', () => {
    expect(deploymentMachine.transitions.live).toMatchObject({ replace: 'replaced' })
    expect(deploymentMachine.transitions.replaced).toEqual({ restore: 'live' })
  })
  it('end for good once it failed, was cancelled or superseded', () => {
    for (const state of ['failed', 'cancelled', 'superseded'] as const)
      expect(deploymentMachine.transitions[state]).toEqual({})
  })
})
