import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { directories } from '#server/kernel/directories'
import { trialPath } from './trial.ts'

const DATABASE = ['portreeve.db', 'portreeve.db-wal', 'portreeve.db.back']
const COPY = /^before-upgrade-/

const orNothing = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/**
 * The process that has a data directory. It is read from the system: whoever tried the lock would hold it for a
 * moment, in which the program that is about to start would find it taken.
 */
export function holderOf(data_directory: string): string | undefined {
  const inode = orNothing(() => statSync(join(data_directory, 'lock')).ino)
  const locks = orNothing(() => readFileSync('/proc/locks', 'utf8')) ?? ''
  for (const line of locks.split('\n')) {
    // 1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
    const [, , , kind, pid, file = ''] = line.trim().split(/\s+/)
    if (kind === 'WRITE' && inode !== undefined && Number(file.split(':')[2]) === inode) return pid
  }
  return undefined
}

/** Processor time of a process, from its line in the system's table. */
const workOf = (pid: string): string | undefined =>
  orNothing(() =>
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .slice(11, 15)
      .join(),
  )

/** A text that is another one once a program that starts, copies, migrates or goes back has come further. */
export function signsOf(data_directory: string): string {
  const copies = directories(data_directory).backups
  const names = (orNothing(() => readdirSync(copies)) ?? []).filter((name) => COPY.test(name))
  const files = [
    ...DATABASE.map((name) => join(data_directory, name)),
    ...names.map((name) => join(copies, name)),
    trialPath(data_directory),
  ]
  const holder = holderOf(data_directory)
  const sizes = files.map((path) => orNothing(() => [statSync(path).size, statSync(path).mtimeMs]))
  return JSON.stringify([holder, holder && workOf(holder), sizes])
}

/** @returns asked at every look, whether nothing of what is read has changed for so long. */
export function createStillness(
  limit_ms: number,
  read: () => string,
  now: () => number = () => performance.now(),
): () => boolean {
  let [seen, since_ms] = [read(), now()]
  return () => {
    const found = read()
    if (found !== seen) [seen, since_ms] = [found, now()]
    return now() - since_ms >= limit_ms
  }
}
