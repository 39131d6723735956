import { Command } from 'commander'
import { findContext, readContexts } from './client/contexts.ts'
import { tame, type Group } from './program.ts'
import { say } from './terminal.ts'
import type { Verb } from './verb.ts'

/** Names of things on the server are worth a moment, not a wait. */
const PATIENCE_MS = 1500

/** The words that may follow. */
interface Place {
  command: Command
  /** Words after the command, without the one that is being typed. */
  rest: string[]
}

/** Goes down from the verb to its commands, as far as the words name them. */
function placeOf(root: Command, words: readonly string[]): Place {
  let command = root
  const rest: string[] = []
  for (const word of words) {
    const below = rest.length === 0 ? command.commands.find((one) => one.name() === word) : undefined
    if (below) command = below
    else rest.push(word)
  }
  return { command, rest }
}

async function appNames(): Promise<string[]> {
  const found = findContext(process.env)
  if (!found) return []
  const { createApi, dataOf } = await import('./client/api.ts')
  // Of no session: that one may renew the login first, which is more than a key that was pressed should do.
  const answer = await dataOf(
    createApi(found.name, found.context).GET('/api/apps', {
      params: { query: { per_page: 100 } },
      signal: AbortSignal.timeout(PATIENCE_MS),
    }),
  )
  return answer.data.map((app: { name: string }) => app.name)
}

const contextNames = () => Object.keys(readContexts(process.env).contexts)

async function candidates({ command, rest }: Place, typed: string): Promise<string[]> {
  const before = rest.at(-1)
  const option = command.options.find(
    ({ long, short }) => before !== undefined && (before === long || before === short),
  )
  if (option?.required) {
    if (option.long === '--app') return appNames()
    return option.long === '--context' ? contextNames() : []
  }
  if (typed.startsWith('-')) return [...command.options.flatMap(({ long }) => (long ? [long] : [])), '--help']
  const argument = command.registeredArguments[0]
  const named = argument?.name() ?? ''
  const choices = argument?.argChoices ?? []
  const isContext = named === 'name' && command.name() === 'use'
  const dynamic = [...(named === 'app' ? await appNames() : []), ...(isContext ? contextNames() : [])]
  return [...command.commands.map((one) => one.name()), ...choices, ...dynamic]
}

/** Prints what may stand in place of the last word, one a line; nothing when that cannot be found out. */
export async function complete(groups: readonly Group[], words: readonly string[]): Promise<void> {
  const verbs: Verb[] = groups.flatMap((group) => [...group.verbs])
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const root = tame(new Command('portreeve'))
  for (const verb of verbs) {
    const command = root.command(verb.name)
    if (verb.name === before[0]) (await verb.load()).default(command)
  }
  const found = await candidates(placeOf(root, before), typed).catch(() => [])
  for (const word of new Set(found)) if (word.startsWith(typed)) say(word)
}
