import type { Command } from 'commander'
import { type Describe, defineVerb } from '../verb.ts'

/** Options of every verb that talks to a server. */
export function withClientOptions(verb: Command): Command {
  return verb
    .option('-c, --context <name>', 'server to talk to (default: the one that was chosen last)')
    .option('--json', 'print what the API answered, for programs')
}
export const withApp = (verb: Command): Command =>
  verb.option('-a, --app <name>', 'app, by name or id (default: PORTREEVE_APP, else the name of this folder)')

/** For verbs about one app and nothing else: its name may stand there, or be given as with the others. */
export const withNamedApp = (verb: Command): Command => withApp(verb.argument('[app]', 'the same as --app'))

/** A verb of the client. */
export const defineClientVerb = (describe: Describe): Describe =>
  defineVerb((verb) => {
    describe(verb)
    // The options of all come last, and stand at each of the commands below a verb.
    const leaves = verb.commands.length > 0 ? verb.commands : [verb]
    for (const leaf of leaves) withClientOptions(leaf as Command)
  })
