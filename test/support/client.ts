import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'
import { ROOT } from './routes.ts'

const COMPILER = join(ROOT, 'node_modules/typescript-native/bin/tsc')
const STRICT = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  noUncheckedIndexedAccess: true,
  allowImportingTsExtensions: true,
  preserveSymlinks: true,
  types: [],
  target: 'ES2024',
  module: 'NodeNext',
  moduleResolution: 'NodeNext',
  lib: ['ES2024', 'DOM', 'DOM.Iterable'],
}

/** A program beside a client that was generated for it. */
export interface CompiledClient<M> {
  /** What the compiler said; empty when everything fits. */
  diagnostics: string[]
  /** Loads the program, to run it. */
  load(): Promise<M>
  dispose(): void
}

/** Types by `openapi-typescript`, for `openapi-fetch`; the program imports them as `./schema.ts`. */
export const types: Generator = async (document, directory) =>
  writeFileSync(join(directory, 'schema.ts'), astToString(await openapiTS(document as OpenAPI3)))
/** A function for each operation by `@hey-api/openapi-ts`; the program imports them from `./sdk/`. */
export const functions: Generator = async (document, directory) => {
  const { createClient } = await import('@hey-api/openapi-ts')
  await createClient({
    input: document as Record<string, unknown>,
    output: { path: join(directory, 'sdk'), module: { extension: '.ts' } },
    plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
    logs: { level: 'silent' },
  })
}
type Generator = (document: unknown, directory: string) => Promise<void>

/**
 * Generates a TypeScript client of an OpenAPI document and compiles a program that uses it, strictly.
 * @param program a file that imports what `generate` makes.
 */
export async function compileClient<M>(
  document: unknown,
  program: string,
  generate: Generator = types,
): Promise<CompiledClient<M>> {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-client-'))
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }')
  await generate(document, directory)
  const copy = join(directory, basename(program))
  copyFileSync(join(ROOT, program), copy)
  writeFileSync(
    join(directory, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: STRICT, files: [basename(program)] }),
  )
  const diagnostics = await promisify(execFile)(
    process.execPath,
    [COMPILER, '--singleThreaded', '--pretty', 'false', '-p', directory],
    { maxBuffer: 8 * 1024 * 1024 },
  ).then(
    () => [],
    (error: { stdout?: string }) => (error.stdout || String(error)).trim().split('\n'),
  )
  return {
    diagnostics,
    load: () => import(/* @vite-ignore */ pathToFileURL(copy).href) as Promise<M>,
    dispose: () => rmSync(directory, { recursive: true, force: true }),
  }
}
