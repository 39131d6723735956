#!/usr/bin/env node
import pkg from '../package.json' with { type: 'json' }
import { tellError } from './faults.ts'
import { runCommands } from './run-commands.ts'
import { endWithReader } from './report-error.ts'

const words = process.argv.slice(2)
// A server goes on when nobody reads what it prints.
if (!words.includes('serve')) endWithReader()
runCommands(words, pkg.version).catch((error: unknown) => tellError(error, words))
