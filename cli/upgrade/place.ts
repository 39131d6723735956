import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isOpenToOthers } from '../client/contexts.ts'
import { CommandError } from '../terminal.ts'
import type { At } from './guard.ts'
import { type Trial, writeTrial } from './trial.ts'

/** More than any program of ours has. */
const MOST_BYTES = 1024 ** 3

const isUrl = (source: string) => /^https?:\/\//.test(source)

/** The digest in a line as `sha256sum` writes it. */
function digestIn(text: string, where: string): string {
  const [, digest] = /^([0-9a-f]{64})(\s|$)/i.exec(text.trim()) ?? []
  if (!digest) throw new CommandError(`${where} holds no SHA-256 checksum.`)
  return digest.toLowerCase()
}

async function download(url: string): Promise<Response> {
  const response = await fetch(url).catch((cause: unknown) => {
    throw new CommandError(
      `${url} cannot be had: ${((cause as Error).cause as Error)?.message ?? 'no answer'}.`,
    )
  })
  if (!response.ok || !response.body) throw new CommandError(`${url} answered ${response.status}.`)
  return response
}

/** Where a program comes from, and which checksum it must have. */
export interface Source {
  sha256: string
  open(): Promise<Readable>
}

/**
 * Finds a program: a file, a release folder with `portreeve` in it, or an address. The checksum is given, or lies
 * beside it as `<name>.sha256`.
 */
export async function findSource(from: string, given?: string): Promise<Source> {
  if (isUrl(from)) {
    // The program is run as root.
    if (given === undefined && isOpenToOthers(from))
      throw new CommandError(
        `${new URL(from).origin} is asked without encryption: whoever is on the way could send another program with a checksum that fits. Use https, or give --sha256.`,
        2,
      )
    const sha256 = digestIn(
      given ?? (await (await download(`${from}.sha256`)).text()),
      given ?? `${from}.sha256`,
    )
    return { sha256, open: async () => Readable.fromWeb((await download(from)).body as never) }
  }
  const found = statSync(from, { throwIfNoEntry: false })
  if (!found) throw new CommandError(`There is nothing at ${from}.`, 2)
  const file = found.isDirectory() ? join(from, 'portreeve') : from
  if (!existsSync(file)) throw new CommandError(`${from} holds no file named portreeve.`, 2)
  if (given === undefined && !existsSync(`${file}.sha256`))
    throw new CommandError(
      `${basename(file)}.sha256 is missing beside ${file}. Put it there, or give --sha256.`,
      2,
    )
  const sha256 = digestIn(given ?? readFileSync(`${file}.sha256`, 'utf8'), given ?? `${file}.sha256`)
  return { sha256, open: () => Promise.resolve(createReadStream(file)) }
}

/** Copies a program beside the one that it replaces and answers the path; a wrong one leaves nothing behind. */
export async function fetchProgram(source: Source, program: string): Promise<string> {
  const target = `${program}.new`
  const hash = createHash('sha256')
  let size = 0
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      hash.update(chunk)
      done(size > MOST_BYTES ? new CommandError('That is larger than any program of ours.') : null, chunk)
    },
  })
  try {
    await pipeline(await source.open(), meter, createWriteStream(target, { mode: 0o600 }))
    const digest = hash.digest('hex')
    if (digest !== source.sha256)
      throw new CommandError(
        `The program is damaged or another one: its checksum is ${digest}, and ${source.sha256} was expected. Nothing was changed.`,
      )
    const file = openSync(target, 'r')
    fsyncSync(file)
    closeSync(file)
    chmodSync(target, 0o755)
    return target
  } catch (error) {
    rmSync(target, { force: true })
    throw error
  }
}

/**
 * Puts the new program in the place of the old one, which is kept. The place is never empty: whatever ends this
 * leaves the old program or the new one in it.
 */
export function placeProgram(data_directory: string, trial: Trial, at: At = () => undefined): void {
  writeTrial(data_directory, trial)
  at('place: noted')
  rmSync(`${trial.old_program}.partial`, { force: true })
  linkSync(trial.program, `${trial.old_program}.partial`)
  renameSync(`${trial.old_program}.partial`, trial.old_program)
  // After a way back both are names of one file, and the kernel renames nothing then.
  rmSync(`${trial.old_program}.partial`, { force: true })
  at('place: old program kept')
  renameSync(`${trial.program}.new`, trial.program)
  at('place: new program in place')
}
