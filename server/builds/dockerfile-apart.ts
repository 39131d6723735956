import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { answerOfThread } from '#server/kernel/thread-answer'
import { threadFile } from '#server/kernel/thread-file'
import type { DockerfileSources } from './dockerfile-sources.ts'

/** File of the thread, beside the built server. */
export const DOCKERFILE_WORKER = 'dockerfile.mjs'
/** Files up to this many characters are read at once: a thread takes longer to start. */
const SHORT = 2048
const TIMEOUT_MS = 20_000
const MEMORY_MB = 192

type Answer = { sources: DockerfileSources } | { refused: string }
type Arguments = Readonly<Record<string, string>>

const tooInvolved = () => new RangeError('The Dockerfile is too involved to be read.')

async function readInThread(
  file: string,
  dockerfile: string,
  build_args: Arguments,
): Promise<DockerfileSources> {
  const worker = new Worker(file, {
    workerData: { dockerfile, build_args },
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  })
  const answer = await answerOfThread<Answer>(worker, {
    timeout_ms: TIMEOUT_MS,
    tooLong: tooInvolved,
    tooLarge: tooInvolved,
    ended: 'The thread of a Dockerfile ended without an answer.',
  })
  if ('sources' in answer) return answer.sources
  throw new RangeError(answer.refused)
}

/**
 * Reads what a Dockerfile lets the engine fetch; a long one in a thread of its own, since it takes the parser
 * some microseconds a character. From sources, where there is no built file of the thread, it is done here.
 * Throws RangeError for what is no Dockerfile.
 */
export async function readDockerfile(
  dockerfile: string,
  build_args: Arguments,
  file = threadFile(DOCKERFILE_WORKER),
): Promise<DockerfileSources> {
  if (dockerfile.length > SHORT && existsSync(file)) return readInThread(file, dockerfile, build_args)
  // The parser is loaded by the first build: a start needs none.
  const { dockerfileSources } = await import('./dockerfile-sources.ts')
  return dockerfileSources(dockerfile, build_args)
}
