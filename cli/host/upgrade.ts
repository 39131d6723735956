import { checkNode } from '#server/start/open-kernel'
import { CommandError } from '../terminal.ts'
import { upgrade } from '../upgrade/upgrade.ts'
import { defineVerb } from '../verb.ts'

export default defineVerb((verb) => {
  verb
    .description(
      `Puts another program in the place of the one that serves, as soon as its checksum is right. The new one copies the database, brings it up to date and starts; when it is not ready within 60 s, or ends before, the old program and the old database are back by themselves. Apps serve meanwhile.

A kill or a power cut at any moment leaves the old program or the new one, with the database that fits.`,
    )
    .argument(
      '<source>',
      'a file, a release folder with the file portreeve, or an address; <name>.sha256 lies beside it',
    )
    .option('--sha256 <digest>', 'the checksum, where none lies beside it')
    .action((source: string, options: { sha256?: string }) => {
      checkNode()
      if (!process.env.PORTREEVE_BUILD)
        throw new CommandError('This command runs from a checkout. Upgrade that: git pull && ./install.sh')
      return upgrade(process.env, source, options)
    })
})
