import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { answerOfThread } from '#server/kernel/thread-answer'
import { threadFile } from '#server/kernel/thread-file'
import { ArchiveError } from '../archive/archive-error.ts'
import { inspectPlatform, type PlatformContents } from './platform-archive.ts'

/** File of the thread, beside the built server. */
export const INSPECT_WORKER = 'inspect.mjs'
const TIMEOUT_MS = 30 * 60_000
const MEMORY_MB = 128

export type Inspected = { contents: PlatformContents } | { damaged: string }

const damaged = (what: string) => new ArchiveError('damaged', `The database in the archive ${what}.`)

/**
 * Checks all of a copy of the database, and counts what is in it. In a thread: a large one takes seconds, in which
 * nobody would be answered. From sources, where there is no built file of the thread, it is done here.
 * Throws ArchiveError `damaged`.
 */
export async function inspectApart(
  path: string,
  file: string = threadFile(INSPECT_WORKER),
): Promise<PlatformContents> {
  if (!existsSync(file)) return inspectPlatform(path)
  const worker = new Worker(file, {
    workerData: path,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  })
  const found = await answerOfThread<Inspected>(worker, {
    timeout_ms: TIMEOUT_MS,
    tooLong: () => damaged('could not be read within half an hour'),
    tooLarge: () => damaged('takes too much memory to be read'),
    ended: 'The thread that reads a copy of the database ended without an answer.',
  })
  if ('damaged' in found) throw new ArchiveError('damaged', found.damaged)
  return found.contents
}
