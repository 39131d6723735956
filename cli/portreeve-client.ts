#!/usr/bin/env node
import pkg from '../package.json' with { type: 'json' }
import { CLIENT_VERBS } from './client-verbs.ts'
import { createProgram, runProgram } from './program.ts'
import { endWithReader, tell } from './tell.ts'

/** The client alone, for those who have Node: one file, without what works on an installation. */
async function main(words: string[]): Promise<void> {
  endWithReader()
  const groups = [{ heading: 'On a server that you are logged in to:', verbs: CLIENT_VERBS }]
  if (words[0] === 'complete') {
    const { complete } = await import('./complete.ts')
    return complete(groups, words[1] === '--' ? words.slice(2) : words.slice(1))
  }
  await runProgram(await createProgram(pkg.version, groups, words), words)
}

const words = process.argv.slice(2)
main(words).catch((error: unknown) => tell(error, words))
