import { closeSync, copyFileSync, existsSync, fsyncSync, linkSync, mkdirSync } from 'node:fs'
import { openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { directories } from '#server/kernel/directories'
import { openDb } from '#server/kernel/db'
import { copyWhole } from '#server/kernel/whole-copy'
import { readTrial, type Trial, writeTrial } from './trial.ts'

/** Where a test may end the process; nothing elsewhere. */
export type At = (step: string) => void
const nowhere: At = () => undefined

/** A power cut in the middle of a start is no fault of the program: it may try again. */
const MOST_ATTEMPTS = 2
const COPIES_KEPT = 3
const NAME = 'portreeve.db'

/** A copy of the whole database, complete or not there. */
function copyDatabase(data_directory: string, trial: Trial): string | null {
  const database = join(data_directory, NAME)
  if (!existsSync(database)) return null
  const folder = directories(data_directory).backups
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, `before-upgrade-to-${trial.to_version}-${trial.to_build}.db`)
  rmSync(path, { force: true })
  const db = openDb(database)
  try {
    copyWhole(db, path)
  } finally {
    db.close()
  }
  const old = readdirSync(folder)
    .filter((name) => name.startsWith('before-upgrade-') && join(folder, name) !== path)
    .map((name) => ({ name, at: statSync(join(folder, name)).mtimeMs }))
    // By age: by name, 1.10 would come before 1.9.
    .sort((a, b) => a.at - b.at)
  for (const { name } of old.slice(0, -(COPIES_KEPT - 1))) rmSync(join(folder, name), { force: true })
  return path
}

/**
 * A second file with the same content. Where none can be made, since the disk has no room for it, a
 * second name of the same one: the copy is then the database itself, and no copy any more, but the
 * program from before serves.
 */
function duplicate(from: string, to: string): void {
  try {
    copyFileSync(from, to)
    const file = openSync(to, 'r')
    fsyncSync(file)
    closeSync(file)
  } catch {
    rmSync(to, { force: true })
    linkSync(from, to)
  }
}

/** Puts the database and the program from before back. Done again after a crash, it does no harm. */
function goBack(data_directory: string, trial: Trial, at: At): void {
  const database = join(data_directory, NAME)
  if (trial.database_copy !== null) {
    duplicate(trial.database_copy, `${database}.back`)
    at('back: database copied')
    // The journal belongs to the database that goes.
    for (const ending of ['-wal', '-shm']) rmSync(`${database}${ending}`, { force: true })
    at('back: journal removed')
    renameSync(`${database}.back`, database)
  }
  at('back: database in place')
  rmSync(`${trial.program}.back`, { force: true })
  linkSync(trial.old_program, `${trial.program}.back`)
  renameSync(`${trial.program}.back`, trial.program)
  at('back: program in place')
  writeTrial(data_directory, { ...trial, state: 'back' })
}

const isTried = (trial: Trial, build: string) => trial.to_build === build

/** Says that the new program is no good; its next start, or this one, goes back. */
export function failTrial(data_directory: string, build: string, reason: string): void {
  const trial = readTrial(data_directory)
  if (trial && isTried(trial, build) && trial.state === 'trying')
    writeTrial(data_directory, { ...trial, state: 'failed', reason })
}

/** Says that the new program is ready. */
export function confirmTrial(data_directory: string, build: string): void {
  const trial = readTrial(data_directory)
  if (trial && isTried(trial, build) && trial.state === 'trying')
    writeTrial(data_directory, { ...trial, state: 'done' })
}

/**
 * What a start has to do with an upgrade, before it opens anything; the caller has the data
 * directory. `go`: start; `try`: start, and tell how it went; `back`: the program from before is in
 * place again, so end, and it is started.
 */
export function guardStart(data_directory: string, build: string, at: At = nowhere): 'go' | 'try' | 'back' {
  let trial = readTrial(data_directory)
  if (!trial || trial.state === 'done' || trial.state === 'back') return 'go'
  if (!isTried(trial, build)) {
    // The old program runs: either the new one was never put in place, or a way back was cut off at
    // its end.
    if (trial.state === 'failed') writeTrial(data_directory, { ...trial, state: 'back' })
    return 'go'
  }
  if (trial.state !== 'failed' && trial.attempts >= MOST_ATTEMPTS) {
    trial = { ...trial, state: 'failed', reason: trial.reason ?? 'It ended twice before it was ready.' }
    writeTrial(data_directory, trial)
  }
  if (trial.state !== 'failed' && trial.database_copy === null) {
    try {
      trial = { ...trial, database_copy: copyDatabase(data_directory, trial) }
      at('try: database copied')
    } catch (error) {
      trial = {
        ...trial,
        state: 'failed',
        reason: `The database could not be copied: ${(error as Error).message}`,
      }
    }
    writeTrial(data_directory, trial)
  }
  if (trial.state === 'failed') {
    goBack(data_directory, trial, at)
    return 'back'
  }
  at('try: noted')
  writeTrial(data_directory, { ...trial, state: 'trying', attempts: trial.attempts + 1 })
  return 'try'
}
