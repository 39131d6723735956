#!/usr/bin/env node
import pkg from '../package.json' with { type: 'json' }
import { findContext } from './client/contexts.ts'
import { CLIENT_VERBS } from './client-verbs.ts'
import { tellError } from './faults.ts'
import { createHostVerb } from './host-verb.ts'
import { HOST_VERBS } from './host-verbs.ts'
import { createProgram, runProgram } from './program.ts'
import { endWithReader } from './tell.ts'
import { chooseVerbs } from './verb-choice.ts'

async function main(words: string[]): Promise<void> {
  // A server goes on when nobody reads what it prints.
  if (!words.includes('serve')) endWithReader()
  const is_client = findContext(process.env) !== undefined
  const { client, host } = chooseVerbs(CLIENT_VERBS, HOST_VERBS, { words, is_client })
  const groups = [
    { heading: 'On a server that you are logged in to:', verbs: client },
    { heading: 'On this machine, as its administrator:', verbs: [...host, createHostVerb(HOST_VERBS)] },
  ]
  if (words[0] === 'complete') {
    const { complete } = await import('./complete.ts')
    return complete(groups, words[1] === '--' ? words.slice(2) : words.slice(1))
  }
  await runProgram(await createProgram(pkg.version, groups, words), words)
}

const words = process.argv.slice(2)
main(words).catch((error: unknown) => tellError(error, words))
