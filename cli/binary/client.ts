import { findContext } from '../client/contexts.ts'
import { CLIENT_VERBS } from '../client-verbs.ts'
import { createHostVerb } from '../host-verb.ts'
import { HOST_VERBS } from '../host-verbs.ts'
import { createProgram, runProgram } from '../program.ts'
import { endWithReader, tell } from '../tell.ts'
import { chooseVerbs } from '../verb-choice.ts'

async function run(words: string[], version: string): Promise<void> {
  const is_client = findContext(process.env) !== undefined
  const { client, host } = chooseVerbs(CLIENT_VERBS, HOST_VERBS, { words, is_client })
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

/** What the binary does itself: the client, and help for everything. It tells of its own errors. */
export async function runClient(words: string[], version: string): Promise<void> {
  endWithReader()
  await run(words, version).catch((error: unknown) => tell(error, words))
}
export type RunClient = typeof runClient
