import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { CommandError } from '../terminal.ts'

/**
 * How far an upgrade is. `placed`: the new program stands in its place, or is about to; `trying`: it was started;
 * `failed`: it did not become ready; `done`: it did; `back`: the old program and its database are in place again.
 */
export type TrialState = 'placed' | 'trying' | 'failed' | 'done' | 'back'

/** One upgrade, as a file that outlives every process that works on it. */
export interface Trial {
  state: TrialState
  from_version: string
  to_version: string
  /** Name of the build that is tried; each program knows its own. */
  to_build: string
  program: string
  /** The program from before, kept beside it. */
  old_program: string
  /** Copy of the database from before; null until it was taken. */
  database_copy: string | null
  /** Starts of the new program that did not end in readiness. */
  attempts: number
  reason: string | null
}

export const trialPath = (data_directory: string): string => join(data_directory, 'upgrade', 'trial.json')

export function readTrial(data_directory: string): Trial | undefined {
  const path = trialPath(data_directory)
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Trial
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if (!(error instanceof SyntaxError)) throw error
    throw new CommandError(
      `${path} is damaged. It tells how far the last upgrade came: remove it when that is done.`,
      1,
      { cause: error },
    )
  }
}

/** Writes a file so that a crash leaves the old content or the new one. */
export function writeWhole(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const partial = `${path}.partial`
  // Made anew: one that is there has the rights that somebody gave it.
  rmSync(partial, { force: true })
  const file = openSync(partial, 'wx', 0o600)
  try {
    // Not writeSync, which takes a part for a success where the disk has no room for the rest.
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(partial, path)
}

export const writeTrial = (data_directory: string, trial: Trial): void =>
  writeWhole(trialPath(data_directory), `${JSON.stringify(trial, null, 2)}\n`)
