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
import { build } from 'esbuild'
import { inject } from 'postject'
import { NODE_ARGUMENTS } from '#server/start/process-arguments'
import { CONTENTS, type Manifest, MANIFEST, type PackedFile } from '../cli/binary/assets.ts'

const ROOT = join(import.meta.dirname, '..')
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
const SMALLEST = 19
const hash = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

/** What other machines and the tools of the build need, and what says when it was made. */
const LEFT_OUT =
  /^nitro\.json$|^portreeve-client\.mjs$|\/prebuilds\/(?!linux-(x64|arm64)\.node$)|\.(map|md|d\.ts|d\.mts|d\.cts)$/
/** The addon for the processor that this is built for. */
const is_ours = (path: string) => !/\/prebuilds\//.test(path) || path.endsWith(`linux-${process.arch}.node`)

/** Files of the build in order, and where they lie. */
function filesOf(directory: string): { path: string; file: string }[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ file, path: relative(directory, file) }))
    .filter(({ path }) => !LEFT_OUT.test(path) && is_ours(path))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

function packManifest(files: readonly { path: string; file: string }[], version: string): Manifest {
  const packed = files.map(
    ({ path, file }): PackedFile => ({
      path,
      sha256: hash(readFileSync(file)),
      size: statSync(file).size,
      mode: path === 'server/portreeve.mjs' ? 0o755 : 0o644,
    }),
  )
  return { name: hash(JSON.stringify(packed)).slice(0, 16), version, files: packed }
}

/** The part that runs first: the client, and what unpacks the rest. */
async function bundleMain(file: string): Promise<void> {
  await build({
    entryPoints: [join(ROOT, 'cli/binary/main.ts')],
    outfile: file,
    absWorkingDir: ROOT,
    bundle: true,
    minifySyntax: true,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    define: { 'import.meta.url': '__own_url' },
    banner: { js: `const __own_url = require('node:url').pathToFileURL(process.execPath).href;` },
    logLevel: 'error',
    plugins: [
      {
        // Verbs of the host are only listed here; they run from where the rest is unpacked to.
        name: 'host-verbs',
        setup(bundle) {
          bundle.onResolve({ filter: /^\.\/host\// }, ({ path }) => ({ path, namespace: 'unpacked' }))
          bundle.onLoad({ filter: /.*/, namespace: 'unpacked' }, () => ({
            contents: 'export default () => {}',
          }))
        },
      },
    ],
  })
}

async function writeInto(
  work: string,
  { output, target, version, level = SMALLEST }: Omit<BinaryOptions, 'work'>,
): Promise<void> {
  const files = filesOf(output)
  const manifest = packManifest(files, version)
  writeFileSync(join(work, MANIFEST), JSON.stringify(manifest))
  const main = join(work, 'main.cjs')
  await bundleMain(main)
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
      assets: { [MANIFEST]: join(work, MANIFEST), [CONTENTS]: join(work, CONTENTS) },
    }),
  )
  execFileSync(process.execPath, ['--experimental-sea-config', join(work, 'sea.json')], { stdio: 'ignore' })
  rmSync(target, { force: true })
  copyFileSync(process.execPath, target)
  chmodSync(target, 0o755)
  await inject(target, 'NODE_SEA_BLOB', readFileSync(blob), { sentinelFuse: FUSE })
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
}

/** Packs a build and Node into one executable file. */
export async function writeBinary({
  output,
  target,
  version,
  work = join(tmpdir(), 'portreeve-binary'),
  level,
}: BinaryOptions): Promise<void> {
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work)
  try {
    await writeInto(work, { output, target, version, level })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
