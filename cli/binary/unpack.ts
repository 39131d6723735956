import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { constants, homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { RunResult } from '#server/kernel/process'
import { CommandError } from '../terminal.ts'
import type { PackedFile } from './assets.ts'

type Environment = Record<string, string | undefined>

const OTHERS = 0o022
/** Folders of other builds that are kept: one may be running, another is the way back. */
const KEPT = 3

/** Where the program is unpacked: `PORTREEVE_CACHE_DIR`, else where programs of this user keep such files. */
export function cacheDirectory(env: Environment, uid: number | undefined): string {
  if (env.PORTREEVE_CACHE_DIR) return resolve(env.PORTREEVE_CACHE_DIR)
  if (uid === 0) return '/var/cache/portreeve'
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'portreeve')
}

/** Programs are run from it: nobody else may be able to write there. */
function requireOwn(directory: string, uid: number | undefined): void {
  const found = lstatSync(directory)
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid) || (found.mode & OTHERS) !== 0)
    throw new CommandError(
      `${directory} must be a folder that only this user can write. Remove it, or set PORTREEVE_CACHE_DIR to another one.`,
    )
}

function write(path: string, bytes: Uint8Array, mode: number): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, 'wx', mode)
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Whether every file is there as it was packed. Damage is found before any of it runs. */
function isWhole(directory: string, files: readonly PackedFile[], digest: (path: string) => string): boolean {
  try {
    return files.every(({ path, sha256 }) => digest(join(directory, path)) === sha256)
  } catch {
    return false
  }
}

/** What the kernel says of the files: nobody changes one of them without changing this. */
const factsOf = (directory: string, files: readonly PackedFile[]): string =>
  files
    .map(({ path }) => {
      const { ino, size, mtimeNs, ctimeNs } = lstatSync(join(directory, path), { bigint: true })
      return [ino, size, mtimeNs, ctimeNs].join(' ')
    })
    .join('\n')
/** Kept in the folder by whoever looked at every byte of it. */
const factsPath = (target: string): string => join(target, '.seen')

function isAsSeen(target: string, files: readonly PackedFile[]): boolean {
  try {
    return readFileSync(factsPath(target), 'utf8') === factsOf(target, files)
  } catch {
    return false
  }
}

/** Removes what earlier builds left, but for the newest ones. */
function prune(cache: string, name: string): void {
  const age = (entry: string) => lstatSync(join(cache, entry)).mtimeMs
  const others = readdirSync(cache).filter((entry) => entry !== name && /^[0-9a-f]{16}$/.test(entry))
  for (const entry of others.sort((a, b) => age(b) - age(a)).slice(KEPT - 1))
    rmSync(join(cache, entry), { recursive: true, force: true })
}

/** Writes what a binary carries into a folder. */
export function writeFiles(folder: string, contents: Iterable<[PackedFile, Uint8Array]>): void {
  for (const [{ path, mode }, bytes] of contents) write(join(folder, path), bytes, mode)
}

/** Why the program that writes the files did not: in its words, or by what ended it where it had none. */
export function unpackFault({ exit_code, stderr, timed_out }: RunResult, timeout_ms: number): CommandError {
  const told = stderr.replace(/^portreeve: /, '').trim()
  if (told !== '') return new CommandError(told)
  const signal = Object.entries(constants.signals).find(([, number]) => exit_code === 128 + number)?.[0]
  const how = signal ? `was ended by the signal ${signal}` : `ended with the code ${exit_code}`
  const why = timed_out ? `was not done within ${timeout_ms / 1000} s` : how
  return new CommandError(
    `Unpacking the program ${why}. Start it again; memory and disk must have room for it.`,
  )
}

export interface UnpackOptions {
  /** Name of the folder, made of the contents. */
  name: string
  files: readonly PackedFile[]
  cache: string
  uid: number | undefined
  /**
   * Whether it is enough that the files are those whose every byte was looked at before, as the kernel knows them.
   * A server looks again at its start: a damaged disk shows in the bytes alone.
   */
  is_quick?: boolean
  /** Writes all files into a folder that is not there yet. */
  fill(folder: string): Promise<void> | void
  /** SHA-256 of a file, hexadecimal. */
  digest(path: string): string
}

/**
 * Puts the program into a folder named after its contents and answers that folder. One that is there and whole is
 * used as it is; a damaged one is made anew. Two that do this at the same time do not hinder each other.
 */
export async function unpack({
  name,
  files,
  cache,
  uid,
  is_quick,
  fill,
  digest,
}: UnpackOptions): Promise<string> {
  mkdirSync(cache, { recursive: true, mode: 0o700 })
  requireOwn(cache, uid)
  const target = join(cache, name)
  if (existsSync(target)) {
    requireOwn(target, uid)
    if (is_quick && isAsSeen(target, files)) return target
    if (isWhole(target, files, digest)) {
      writeFileSync(factsPath(target), factsOf(target, files), { mode: 0o600 })
      utimesSync(target, new Date(), new Date())
      return target
    }
    renameSync(target, `${target}.damaged-${process.pid}`)
    rmSync(`${target}.damaged-${process.pid}`, { recursive: true, force: true })
  }
  const partial = `${target}.partial-${process.pid}`
  rmSync(partial, { recursive: true, force: true })
  try {
    await fill(partial)
    chmodSync(partial, 0o700)
    renameSync(partial, target)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    if (!existsSync(target)) throw error
  }
  prune(cache, name)
  return target
}
