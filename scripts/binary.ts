/**
 * Writes the whole product as one file, `dist/portreeve`, with its checksum and a list of what is inside:
 * `npm run binary`. Two builds of one commit are the same. The checkout has to be built (`npm run build`).
 */
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pkg from '../package.json' with { type: 'json' }
import { writeBinary } from './binary-file.ts'
import { materials } from './binary-materials.ts'

const ROOT = join(import.meta.dirname, '..')
const OUTPUT = join(ROOT, '.output')
const DIST = join(ROOT, 'dist')

if (!existsSync(join(OUTPUT, 'server/index.mjs'))) throw new Error('Build the checkout first: npm run build')
mkdirSync(DIST, { recursive: true })
const target = join(DIST, 'portreeve')
await writeBinary({ output: OUTPUT, target, version: pkg.version })
const bytes = readFileSync(target)
const digest = createHash('sha256').update(bytes).digest('hex')
writeFileSync(`${target}.sha256`, `${digest}  portreeve\n`)
writeFileSync(`${target}.cdx.json`, materials(ROOT, pkg.version, digest))
copyFileSync(join(OUTPUT, 'portreeve-client.mjs'), join(DIST, 'portreeve-client.mjs'))
process.stdout.write(`dist/portreeve: ${(bytes.length / 1e6).toFixed(0)} MB, sha256 ${digest}\n`)
