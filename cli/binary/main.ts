import { createRequire, enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { compileFunction, constants } from 'node:vm'
import { run } from '#server/kernel/process'
import { findContext } from '../client/contexts.ts'
import { CLIENT_VERBS } from '../client-verbs.ts'
import { HOST_VERBS } from '../host-verbs.ts'
import { reportError } from '../report-error.ts'
import { chooseVerbs, firstWord, needsAll } from '../verb-choice.ts'
import {
  CLIENT,
  createDigest,
  readContents,
  readFiles,
  readManifest,
  readScript,
  WHOLE_CLIENT,
} from './assets.ts'
import type { RunClient } from './client.ts'
import { cacheDirectory, unpack, unpackFault, writeFiles } from './unpack.ts'

/** Calls this program to write what it carries, whose memory then is none of a server's. */
const WRITE = '--write-to'
const WRITE_MS = 300_000
async function writeApart(folder: string): Promise<void> {
  const result = await run([process.execPath, WRITE, folder], {
    cwd: '/',
    timeout_ms: WRITE_MS,
  })
  if (result.exit_code !== 0) throw unpackFault(result, WRITE_MS)
}

/** Everything that is no client: unpacked once, then run as it is from a checkout. */
async function runUnpacked(is_quick: boolean): Promise<void> {
  const uid = process.getuid?.()
  const cache = cacheDirectory(process.env, uid)
  const { name } = readManifest()
  const files = readFiles()
  const directory = await unpack({
    name,
    files,
    cache,
    uid,
    is_quick,
    fill: writeApart,
    digest: createDigest(),
  })
  // What was compiled once is read at the next start.
  enableCompileCache(join(directory, 'compiled'))
  process.env.PORTREEVE_BUILD = name
  const entry = join(directory, 'server/portreeve.mjs')
  process.argv[1] = entry
  // What a binary itself may import are only the parts of Node; a function made for a file has no such limit.
  createRequire(entry)(entry)
}

/** The client is compiled only where it is called: it would stay in the memory of a server. */
function runClient(words: string[], version: string): Promise<void> {
  const client = { exports: {} as { runClient: RunClient } }
  const script = needsAll(words) ? WHOLE_CLIENT : CLIENT
  compileFunction(readScript(script), ['require', 'module'], {
    filename: script,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })(require, client)
  return client.exports.runClient(words, version)
}

async function main(words: string[]): Promise<void> {
  if (words[0] === WRITE && words[1]) return writeFiles(words[1], readContents(readFiles()))
  const { version, name: build } = readManifest()
  if (words[0] === '--build') return void process.stdout.write(`${JSON.stringify({ build, version })}\n`)
  const is_client = findContext(process.env) !== undefined
  const { host } = chooseVerbs(CLIENT_VERBS, HOST_VERBS, { words, is_client })
  const called = firstWord(words)
  if (called === 'host' || host.some(({ name }) => name === called))
    return runUnpacked(!words.includes('serve'))
  await runClient(words, version)
}

const words = process.argv.slice(2)
main(words).catch((error: unknown) => reportError(error, words))
