import { parentPort, workerData } from 'node:worker_threads'
import { ArchiveError } from '../archive/archive-error.ts'
import type { Inspected } from './inspect-apart.ts'
import { inspectPlatform } from './platform-archive.ts'

/** Entry of the thread that reads all of a copy of the database; the server is built with it as a file of its own. */
function inspect(path: string): Inspected {
  try {
    return { contents: inspectPlatform(path) }
  } catch (error) {
    // An error of ours would arrive as one of nobody's.
    if (error instanceof ArchiveError) return { damaged: error.message }
    throw error
  }
}

parentPort?.postMessage(inspect(workerData as string))
