import { addVerb, tame } from './program.ts'
import { defineVerb, type Verb } from './verb.ts'

/** `portreeve host <verb>`: what works on this machine, also where the client has a verb of the same name. */
export const createHostVerb = (verbs: readonly Verb[]): Verb => ({
  name: 'host',
  summary: 'the commands of this machine, for certain: portreeve host --help',
  load: async () => ({
    default: defineVerb((parent) => {
      parent.description(
        'What works on the installation of this machine, in its data directory, without the API.',
      )
      for (const { name, summary, load } of verbs)
        tame(parent.command(name))
          .summary(summary)
          .allowUnknownOption()
          .passThroughOptions()
          .helpOption(false)
          .argument('[words...]')
          .action(async (words: string[]) => {
            const { Command } = await import('commander')
            const root = tame(new Command('portreeve host'))
            await addVerb(root, { name, summary, load }, '', true)
            await root.parseAsync([name, ...words], { from: 'user' })
          })
    }),
  }),
})
