import { checkNode } from '#server/start/open-kernel'
import { restore } from '../restore.ts'
import { defineVerb } from '../verb.ts'

export default defineVerb((verb) => {
  verb
    .description(
      `Puts the database and the key of a backup into an empty data directory. At its next start Portreeve restores databases and volumes from their newest backups and deploys the apps.`,
    )
    .argument(
      '<source>',
      'an archive with its manifest beside it, a folder with archives (the newest counts), or a JSON file that describes a destination as the API does: {"kind": "s3", "config": {…}}',
    )
    .option(
      '--passphrase-file <path>',
      'file with the passphrase of the destination (default: PORTREEVE_BACKUP_PASSPHRASE)',
    )
    .option('--wait', 'stay until the server, which you start meanwhile, has everything back, and tell what')
    .action((source: string, { passphraseFile, wait }: { passphraseFile?: string; wait?: boolean }) => {
      checkNode()
      return restore(process.env, {
        source,
        ...(wait ? { wait } : {}),
        ...(passphraseFile === undefined ? {} : { passphrase_file: passphraseFile }),
      })
    })
})
