import { findContext } from './client/contexts.ts'
import { CLIENT_VERBS } from './client-verbs.ts'
import { createHostVerb } from './host-verb.ts'
import { HOST_VERBS } from './host-verbs.ts'
import { requireNode } from './node-version.ts'
import { createProgram, runProgram } from './program.ts'
import { chooseVerbs } from './verb-choice.ts'

/** Runs what was typed, of the client or of the host, or answers what a shell asks for. */
export async function runCommands(words: string[], version: string): Promise<void> {
  requireNode()
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
  await runProgram(await createProgram(version, groups, words), words)
}
