import pkg from '../package.json' with { type: 'json' }
import { CLIENT_VERBS } from './client-verbs.ts'
import { requireNode } from './node-version.ts'
import { createProgram, runProgram } from './program.ts'
import { endWithReader, reportError } from './report-error.ts'
import { needsAll } from './verb-choice.ts'

/** The client alone, for those who have Node: one file, without what works on an installation. */
async function main(words: string[]): Promise<void> {
  endWithReader(words)
  requireNode()
  const groups = [{ heading: 'On a server that you are logged in to:', verbs: CLIENT_VERBS }]
  if (words[0] === 'complete') {
    const { complete } = await import('./complete.ts')
    return complete(groups, words[1] === '--' ? words.slice(2) : words.slice(1))
  }
  await runProgram(await createProgram(pkg.version, groups, words), words)
}

const words = process.argv.slice(2)
// In the built file this script goes without the verbs of projects, beside one with all of them.
const { whole } = module as { whole?: () => void }
if (whole && needsAll(words)) whole()
else main(words).catch((error: unknown) => reportError(error, words))
