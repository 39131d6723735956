import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'
import type { DocumentTexts } from '../server/http/openapi-text.ts'

/** A route as the build finds it. */
export interface FoundRoute {
  route: string
  method: string
  /** Path of its file. */
  handler: string
}

/** What exists in a finished build only; nothing of it is read while the document is made. */
const absent: Plugin = {
  name: 'absent',
  setup(bundle) {
    const filter = /^#(endpoints|migrations|templates|template-shelf|dashboard|api-document)$/
    bundle.onResolve({ filter }, ({ path }) => ({ path, namespace: 'absent' }))
    bundle.onLoad({ filter: /.*/, namespace: 'absent' }, () => ({
      contents:
        'export const endpoints = [], migrations = [], documentTexts = {}, origin = import.meta.url, shelf = "[]"\nexport const readShelf = async () => []',
    }))
  },
}

/** A program that writes the document of these routes into the file that it is called with. */
function program(found: readonly FoundRoute[], version: string): string {
  const rows = found.map(
    ({ route, method }, at) =>
      `{ path: ${JSON.stringify(route)}, method: ${JSON.stringify(method)}, definition: route${at}.definition }`,
  )
  return [
    `import { writeFileSync } from 'node:fs'`,
    `import { renderDocuments } from '#server/http/openapi-documents'`,
    `import { tagsOf } from '#server/kernel/compose'`,
    `import { MODULES } from '#server/modules'`,
    ...found.map(({ handler }, at) => `import route${at} from ${JSON.stringify(handler)}`),
    `const facts = { version: ${JSON.stringify(version)}, tags: tagsOf(MODULES) }`,
    `writeFileSync(process.argv[2], JSON.stringify(renderDocuments([${rows.join(',\n')}], facts)))`,
    'process.exit(0)',
  ].join('\n')
}

/**
 * Makes the API document from the definitions of these routes, in a process of its own, since they are written for
 * the server and not for the program that builds it.
 */
export async function buildDocuments(
  root: string,
  found: readonly FoundRoute[],
  version: string,
): Promise<DocumentTexts> {
  // Inside of the checkout, so that packages are found.
  const parent = join(root, 'node_modules/.cache')
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, 'api-document-'))
  try {
    const outfile = join(directory, 'program.mjs')
    await build({
      stdin: { contents: program(found, version), resolveDir: root, loader: 'ts' },
      outfile,
      absWorkingDir: root,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      packages: 'external',
      logLevel: 'warning',
      plugins: [absent],
    })
    const written = join(directory, 'document.json')
    await promisify(execFile)(process.execPath, [outfile, written], { cwd: root })
    return JSON.parse(readFileSync(written, 'utf8')) as DocumentTexts
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
