#!/usr/bin/env node
import pkg from '../package.json' with { type: 'json' }
import { tellError } from './faults.ts'
import { runCommands } from './run-commands.ts'
import { endWithReader } from './report-error.ts'
import { firstWord } from './verb-choice.ts'

/** A server is given its settings by what starts it, and a setup may be about another installation or machine. */
const TOLD = ['serve', 'setup', 'uninstall']
/** Needs no installation. */
const HELP = ['--help', '-h', '--version', '-V']

async function main(words: string[]): Promise<void> {
  const verb = firstWord(words[0] === 'host' ? words.slice(1) : words) ?? ''
  if (process.env.PORTREEVE_BUILD && !TOLD.includes(verb) && !HELP.some((word) => words.includes(word))) {
    const { adoptSettings } = await import('./setup/installed.ts')
    adoptSettings(process.env, process.execPath)
  }
  await runCommands(words, pkg.version)
}

const words = process.argv.slice(2)
// A server goes on when nobody reads what it prints.
if (!words.includes('serve')) endWithReader(words)
main(words).catch((error: unknown) => tellError(error, words))
