import { createRequire, enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { findContext } from '../client/contexts.ts'
import { CLIENT_VERBS } from '../client-verbs.ts'
import { HOST_VERBS } from '../host-verbs.ts'
import { createProgram, firstWord, runProgram } from '../program.ts'
import { endWithReader, tell } from '../tell.ts'
import { chooseVerbs, createHostVerb } from '../verb-choice.ts'
import { readContents, readManifest, sha256 } from './assets.ts'
import { cacheDirectory, unpack } from './unpack.ts'

/** Everything that is no client: unpacked once, then run as it is from a checkout. */
function runUnpacked(is_quick: boolean): void {
  const uid = process.getuid?.()
  const cache = cacheDirectory(process.env, uid)
  const manifest = readManifest()
  const directory = unpack({ manifest, cache, uid, is_quick, contents: () => readContents(manifest), sha256 })
  // What was compiled once is read at the next start.
  enableCompileCache(join(directory, 'compiled'))
  process.env.PORTREEVE_BUILD = manifest.name
  const entry = join(directory, 'server/portreeve.mjs')
  process.argv[1] = entry
  // What a binary itself may import are only the parts of Node; a function made for a file has no such limit.
  createRequire(entry)(entry)
}

async function main(words: string[]): Promise<void> {
  const { version, name: build } = readManifest()
  if (words[0] === '--build') return void process.stdout.write(`${JSON.stringify({ build, version })}\n`)
  const is_client = findContext(process.env) !== undefined
  const { client, host } = chooseVerbs(CLIENT_VERBS, HOST_VERBS, { words, is_client })
  const called = firstWord(words)
  if (called === 'host' || host.some(({ name }) => name === called))
    return runUnpacked(!words.includes('serve'))
  endWithReader()
  const groups = [
    { heading: 'On a server that you are logged in to:', verbs: client },
    { heading: 'On this machine, as its administrator:', verbs: [...host, createHostVerb(HOST_VERBS)] },
  ]
  if (words[0] === 'complete') {
    const { complete } = await import('../complete.ts')
    return complete(groups, words[1] === '--' ? words.slice(2) : words.slice(1))
  }
  await runProgram(await createProgram(version, groups, words), words)
}

const words = process.argv.slice(2)
main(words).catch((error: unknown) => tell(error, words))
