import { existsSync } from 'node:fs'
import { checkNode } from '#server/start/open-kernel'
import pkg from '../../package.json' with { type: 'json' }
import { CommandError } from '../terminal.ts'
import { guardedStart } from '../upgrade/guarded-start.ts'
import { defineVerb } from '../verb.ts'

/** The server that was built beside this command, or in this checkout. */
async function serve(): Promise<void> {
  checkNode()
  const entry = ['./index.mjs', '../index.mjs', '../../.output/server/index.mjs']
    .map((path) => new URL(path, import.meta.url))
    .find((url) => existsSync(url))
  if (!entry) throw new CommandError('The server is not built yet. Run: npm run build')
  process.env.NODE_ENV ??= 'production'
  const build = process.env.PORTREEVE_BUILD
  // A checkout is brought up to date by install.sh; the one-file program looks after itself.
  if (build && !guardedStart(process.env, build, pkg.version)) return
  await import(entry.href)
}

export default defineVerb((verb) => {
  verb
    .description(
      'Runs the server in this terminal. The data directory is PORTREEVE_DATA_DIR (default .data in the current folder); every setting is taken from the environment. The command that install.sh puts on the PATH knows the settings of its installation.',
    )
    .action(serve)
})
