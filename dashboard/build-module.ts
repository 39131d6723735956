import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Nitro } from 'nitropack/types'

/** Smaller files are sent as they are. */
const WORTH_COMPRESSING_BYTES = 1024
const COMPRESSED = /\.(js|css|svg)$/

/** Changes with everything that the built dashboard is made of. */
function fingerprint(root: string): string {
  const hash = createHash('sha256')
  const own = (path: string) => !/^(dist|src\/api\/generated)(\/|$)/.test(path)
  const files = readdirSync(join(root, 'dashboard'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(root, 'dashboard').length + 1))
    .filter(own)
    .sort()
  for (const file of files) hash.update(file).update(readFileSync(join(root, 'dashboard', file)))
  return hash.update(readFileSync(join(root, 'package-lock.json'))).digest('hex')
}

/** Puts a compressed copy beside every file that gains by it, so that the server compresses nothing. */
async function compress(directory: string): Promise<void> {
  const names = readdirSync(directory).filter((name) => COMPRESSED.test(name))
  await Promise.all(
    names.map(async (name) => {
      const file = join(directory, name)
      const bytes = readFileSync(file)
      if (bytes.length < WORTH_COMPRESSING_BYTES) return
      const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }
      await writeFile(`${file}.br`, await promisify(brotliCompress)(bytes, quality))
      await writeFile(`${file}.gz`, await promisify(gzip)(bytes, { level: 9 }))
    }),
  )
}

/** Builds the dashboard into `dashboard/dist`, unless what lies there was made of the same sources. */
export async function buildDashboard(root: string): Promise<string> {
  const directory = join(root, 'dashboard/dist')
  const mark = join(directory, '.fingerprint')
  const now = fingerprint(root)
  if (existsSync(mark) && readFileSync(mark, 'utf8') === now) return directory
  const { build } = await import('vite')
  await build({ configFile: join(root, 'dashboard/vite.config.ts'), logLevel: 'warn' })
  await compress(join(directory, 'assets'))
  writeFileSync(mark, now)
  return directory
}

/** Puts the dashboard beside the server, as `.output/public`, and tells the server where it lies. */
export default function dashboard(nitro: Nitro): void {
  nitro.options.virtual['#dashboard'] = () => 'export const origin = import.meta.url'
  nitro.hooks.hook('compiled', async () => {
    if (nitro.options.dev) return
    const built = await buildDashboard(nitro.options.rootDir)
    const target = nitro.options.output.publicDir
    rmSync(target, { recursive: true, force: true })
    cpSync(built, target, { recursive: true })
  })
}
