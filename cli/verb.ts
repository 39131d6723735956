import type { Command } from 'commander'

/** Says what a verb takes and does. It is called only when the verb is, or when everything is listed. */
export type Describe = (verb: Command) => void

/** One line of the list of verbs, which is shown without loading any of them. */
export interface Verb {
  name: string
  /** As `--help` shows it, in the imperative. */
  summary: string
  load(): Promise<{ default: Describe }>
}

/** The one export of a verb's file. */
export const defineVerb = (describe: Describe): Describe => describe
