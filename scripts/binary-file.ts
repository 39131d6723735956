import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import { inject } from 'postject'
import { NODE_ARGUMENTS } from '#server/start/process-arguments'
import {
  CLIENT,
  CONTENTS,
  FILES,
  type Manifest,
  MANIFEST,
  type PackedFile,
  WHOLE_CLIENT,
} from '../cli/binary/assets.ts'
import { bundleScript, OF_PROJECTS } from '../cli/bundle-scripts.ts'
import { nodeFor, type Processor } from './node-program.ts'

const ROOT = join(import.meta.dirname, '..')
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
const SMALLEST = 19
const HERE = process.arch as Processor
const hash = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

/** What other machines and the tools of the build need, and what says when it was made. */
const LEFT_OUT =
  /^nitro\.json$|^portreeve-client\.mjs$|\/prebuilds\/(?!linux-(x64|arm64)\.node$)|\.(map|md|d\.ts|d\.mts|d\.cts)$/
/** Addons are there for each processor. */
const isFor = (processor: Processor) => (path: string) =>
  !/\/prebuilds\//.test(path) || path.endsWith(`linux-${processor}.node`)

/** Files of the build in order, and where they lie. */
function filesOf(directory: string, processor: Processor): { path: string; file: string }[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ file, path: relative(directory, file) }))
    .filter(({ path }) => !LEFT_OUT.test(path) && isFor(processor)(path))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

function packedFiles(files: readonly { path: string; file: string }[]): PackedFile[] {
  return files.map(({ path, file }) => ({
    path,
    sha256: hash(readFileSync(file)),
    size: statSync(file).size,
    mode: path === 'server/portreeve.mjs' ? 0o755 : 0o644,
  }))
}

async function writeInto(
  work: string,
  { output, target, version, level = SMALLEST, processor = HERE }: Omit<BinaryOptions, 'work'>,
): Promise<void> {
  const files = filesOf(output, processor)
  const packed = JSON.stringify(packedFiles(files))
  const manifest: Manifest = { name: hash(packed).slice(0, 16), version }
  writeFileSync(join(work, MANIFEST), JSON.stringify(manifest))
  writeFileSync(join(work, FILES), packed)
  const main = join(work, 'main.cjs')
  const script = (entry: string, verbs: RegExp) => bundleScript(ROOT, join('cli/binary', entry), verbs)
  // What runs first only lists verbs; those of the host run from where the rest is unpacked to.
  writeFileSync(main, await script('main.ts', /^\.\/(host|client\/verbs)\/|^\.\/completion\.ts$/))
  writeFileSync(join(work, CLIENT), await script('client.ts', new RegExp(`^\\./host/|${OF_PROJECTS.source}`)))
  writeFileSync(join(work, WHOLE_CLIENT), await script('client.ts', /^\.\/host\//))
  const blob = join(work, 'blob')
  const contents = Buffer.concat(files.map(({ file }) => readFileSync(file)))
  const params = { [constants.ZSTD_c_compressionLevel]: level }
  writeFileSync(join(work, CONTENTS), zstdCompressSync(contents, { params }))
  writeFileSync(
    join(work, 'sea.json'),
    JSON.stringify({
      main,
      output: blob,
      disableExperimentalSEAWarning: true,
      // V8's cache differs each time it is made; without it two builds of one commit are the same.
      useCodeCache: false,
      execArgv: NODE_ARGUMENTS,
      assets: Object.fromEntries(
        [MANIFEST, FILES, CLIENT, WHOLE_CLIENT, CONTENTS].map((name) => [name, join(work, name)]),
      ),
    }),
  )
  execFileSync(process.execPath, ['--experimental-sea-config', join(work, 'sea.json')], { stdio: 'ignore' })
  const program = join(work, 'program')
  // What Node made of the parts is the same for every processor, since it holds no compiled code.
  copyFileSync(nodeFor(processor, work), program)
  await inject(program, 'NODE_SEA_BLOB', readFileSync(blob), { sentinelFuse: FUSE })
  // What is written by one call lies in large pieces in the memory of the kernel, which maps each as a whole: 20 to
  // 35 MB more in a server that is started from it.
  rmSync(target, { force: true })
  copyFileSync(program, target)
  chmodSync(target, 0o755)
}

export interface BinaryOptions {
  /** The built server with all that lies beside it. */
  output: string
  target: string
  version: string
  /** Stands in what is made: the same one makes the same binary. */
  work?: string
  /** How hard zstd tries, 1 to 19; the smallest file when absent, which takes ten seconds of one core. */
  level?: number
  /** That of this machine when absent. */
  processor?: Processor
}

/** Packs a build and Node into one executable file. */
export async function writeBinary({
  output,
  target,
  version,
  work = join(tmpdir(), 'portreeve-binary'),
  level,
  processor,
}: BinaryOptions): Promise<void> {
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work)
  try {
    await writeInto(work, { output, target, version, level, processor })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
