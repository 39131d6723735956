import type { Verb } from './verb.ts'

/** The first word that is not an option. */
export const firstWord = (words: readonly string[]): string | undefined =>
  words.find((word) => !word.startsWith('-'))

/** What is known before a verb is loaded. */
interface Call {
  words: readonly string[]
  /** Whether a server is known that the client can talk to. */
  is_client: boolean
}

/** Options that name a server or an app: whoever gives one means the client. */
const OF_CLIENT = /^(-c|-a|--context|--app)(=|$)/

/**
 * `status` and `logs` mean a server that somebody is logged in to, and this installation where nobody is: on a
 * fresh server they work at once. An app, a context or a login makes them the client's; `portreeve host status`
 * always means the installation. A word right behind the verb is the name of an app: the host's take none.
 */
export function chooseVerbs(client: readonly Verb[], host: readonly Verb[], { words, is_client }: Call) {
  const shared = host.filter(({ name }) => client.some((one) => one.name === name)).map(({ name }) => name)
  const verb = firstWord(words)
  const next = verb === undefined ? undefined : words[words.indexOf(verb) + 1]
  const names_app = next !== undefined && !next.startsWith('-')
  const is_meant = is_client || names_app || words.some((word) => OF_CLIENT.test(word))
  const of_host = verb !== undefined && shared.includes(verb) && !is_meant
  return {
    client: client.filter(({ name }) => !(of_host && name === verb)),
    host: host.filter(({ name }) => (of_host && name === verb) || !shared.includes(name)),
  }
}

/** Verbs that read and write project files need four times the code of all others together. */
export const PROJECT_VERBS = ['plan', 'apply', 'export', 'import']
const NEEDS_ALL = ['complete', 'help', ...PROJECT_VERBS]

/** Whether a call needs the code of every verb; others are done by a script without those of projects. */
export const needsAll = (words: readonly string[]): boolean => NEEDS_ALL.includes(firstWord(words) ?? '')
