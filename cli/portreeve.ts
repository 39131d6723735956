#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { SecretUnreadableError } from '#server/kernel/secrets'
import { checkNode } from '#server/start/open-kernel'
import { StartError, toStartError } from '#server/start/start-faults'
import pkg from '../package.json' with { type: 'json' }
import { restore } from './restore.ts'
import { rotateKey } from './rotate-key.ts'
import { CommandError } from './terminal.ts'

const HELP = `Portreeve ${pkg.version}: self-hosted application hosting.

  portreeve serve               run the server in this terminal
  portreeve rotate-key          replace the key that stored secrets are sealed with
  portreeve restore <source>    rebuild an installation from a backup of the platform
  portreeve --version
  portreeve --help

The data directory is PORTREEVE_DATA_DIR (default .data in the current folder); every setting of the server is taken from the
environment. The command that install.sh puts on the PATH knows the settings of its installation.

rotate-key
  Makes a new key and seals every stored secret with it; then the old key is gone. While Portreeve is stopped, the command does it
  all. While it runs, the command prepares the new key, and the work is done by Portreeve after its next restart.
  An interrupted rotation goes on where it was, with this command or at the next start.
  Bearer tokens end with the rotation: people log in again. Sessions of browsers and API keys stay.
  --wait   while Portreeve runs: wait for the restart and the end, telling how far it is

restore
  Puts the database and the key of a backup into an empty data directory. At its next start Portreeve restores databases and
  volumes from their newest backups and deploys the apps. <source> is an archive with its manifest beside it, a folder with
  archives (the newest counts), or a JSON file that describes a destination as the API does: {"kind": "s3", "config": {…}}.
  The passphrase of the destination is taken from PORTREEVE_BACKUP_PASSPHRASE, or from a file:
  --passphrase-file <path>
`

/** The server that was built beside this command, or in this checkout. */
async function serve(): Promise<void> {
  const entry = ['./index.mjs', '../.output/server/index.mjs']
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url))
  if (!entry) throw new CommandError('The server is not built yet. Run: npm run build')
  process.env.NODE_ENV ??= 'production'
  await import(entry.href)
}

/** One source, and where the passphrase is. */
function restoreOptions(options: readonly string[]) {
  const at = options.indexOf('--passphrase-file')
  const passphrase_file = at === -1 ? undefined : options[at + 1]
  const rest = options.filter((_, index) => at === -1 || (index !== at && index !== at + 1))
  const odd = rest.find((option) => option.startsWith('-'))
  if (odd !== undefined)
    throw new CommandError(`portreeve restore does not know ${odd}. Try portreeve --help.`, 2)
  if (rest.length !== 1 || (at !== -1 && passphrase_file === undefined))
    throw new CommandError('Name one archive, folder or description of a destination to restore from.', 2)
  return { source: rest[0]!, ...(passphrase_file === undefined ? {} : { passphrase_file }) }
}

async function main([command, ...options]: string[]): Promise<void> {
  if (
    command === undefined ||
    command === '--help' ||
    command === '-h' ||
    command === 'help' ||
    options.includes('--help')
  )
    return void process.stdout.write(HELP)
  if (command === '--version' || command === 'version') return void process.stdout.write(`${pkg.version}\n`)
  checkNode()
  if (command === 'restore') return restore(process.env, restoreOptions(options))
  const known = { serve: [] as string[], 'rotate-key': ['--wait'] }[command]
  if (!known) throw new CommandError(`There is no command ${command}. Try portreeve --help.`, 2)
  const odd = options.find((option) => !known.includes(option))
  if (odd !== undefined)
    throw new CommandError(`portreeve ${command} does not know ${odd}. Try portreeve --help.`, 2)
  return command === 'serve' ? serve() : rotateKey(process.env, { wait: options.includes('--wait') })
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const known = toStartError(error, 'portreeve.db of the data directory')
  const isOurs = [CommandError, StartError, SecretUnreadableError].some((kind) => known instanceof kind)
  process.stderr.write(
    `portreeve: ${isOurs ? (known as Error).message : ((error as Error).stack ?? String(error))}\n`,
  )
  process.exitCode = error instanceof CommandError ? error.exit_code : 1
})
