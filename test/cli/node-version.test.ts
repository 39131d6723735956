import { expect, it } from 'vitest'
import { requireNode } from '../../cli/node-version.ts'

it.each(['18.20.0', '20.20.2', '22.13.9'])(
  'Node %s is refused before anything is done: it would end in the middle of a deployment',
  (version) => {
    expect(() => requireNode(version)).toThrow(`This needs Node 22.14 or later, and runs with ${version}.`)
  },
)
it.each(['22.14.0', '24.0.0', process.versions.node])('Node %s is taken', (version) => {
  expect(() => requireNode(version)).not.toThrow()
})
