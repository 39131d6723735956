#!/usr/bin/env node
import pkg from '../package.json' with { type: 'json' }
import { tellError } from './faults.ts'
import { HOST_VERBS } from './host-verbs.ts'
import { createProgram, runProgram } from './program.ts'

async function main(words: string[]): Promise<void> {
  const groups = [{ heading: 'On this machine:', verbs: HOST_VERBS }]
  await runProgram(await createProgram(pkg.version, groups, words), words)
}

main(process.argv.slice(2)).catch(tellError)
