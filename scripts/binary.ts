/**
 * Writes the whole product as one file, `dist/portreeve`, with its checksum and a list of what is inside:
 * `npm run binary`. Two builds of one commit are the same. The checkout has to be built (`npm run build`).
 * `npm run binary -- --arch arm64` writes the one for that processor, `dist/arm64/portreeve`.
 */
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import pkg from '../package.json' with { type: 'json' }
import { writeBinary } from './binary-file.ts'
import { materials } from './binary-materials.ts'
import { type Processor, PROCESSORS } from './node-program.ts'

const ROOT = join(import.meta.dirname, '..')
const OUTPUT = join(ROOT, '.output')
const { values } = parseArgs({ options: { arch: { type: 'string', default: process.arch } } })
const processor = values.arch as Processor
const DIST = processor === process.arch ? join(ROOT, 'dist') : join(ROOT, 'dist', processor)

if (!PROCESSORS.includes(processor)) throw new Error(`--arch is one of ${PROCESSORS.join(', ')}.`)
if (!existsSync(join(OUTPUT, 'server/index.mjs'))) throw new Error('Build the checkout first: npm run build')
mkdirSync(DIST, { recursive: true })
const target = join(DIST, 'portreeve')
await writeBinary({ output: OUTPUT, target, version: pkg.version, processor })
const bytes = readFileSync(target)
const digest = createHash('sha256').update(bytes).digest('hex')
writeFileSync(`${target}.sha256`, `${digest}  portreeve\n`)
writeFileSync(`${target}.cdx.json`, materials(ROOT, pkg.version, digest))
copyFileSync(join(OUTPUT, 'portreeve-client.mjs'), join(DIST, 'portreeve-client.mjs'))
process.stdout.write(`${relative(ROOT, target)}: ${(bytes.length / 1e6).toFixed(0)} MB, sha256 ${digest}\n`)
