import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { DetectOptions } from './detect.ts'
import { type BuildPlan, DetectionError } from './plan.ts'

/** File of the thread, beside the built server. */
export const DETECT_WORKER = 'detect.mjs'
const TIMEOUT_MS = 60_000
const MEMORY_MB = 256

type Answer = { plan: BuildPlan } | { refused: Pick<DetectionError, 'message' | 'hint' | 'looked_for'> }

const tooMuch = (what: string) =>
  new DetectionError(
    `The source is too large to be looked at: it took more than ${what}.`,
    'Name a smaller base_directory, or bring a Dockerfile.',
    [],
  )

/** The stacks and their parsers are loaded by the first build: a start needs none of them. */
async function detectHere(directory: string, overrides: DetectOptions): Promise<BuildPlan> {
  const [{ detect }, { openTree }] = await Promise.all([import('./detect.ts'), import('./source-tree.ts')])
  return detect(openTree(directory), overrides)
}

function detectInThread(file: string, directory: string, overrides: DetectOptions): Promise<BuildPlan> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, {
      workerData: { directory, overrides },
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    })
    const end = (act: () => void) => {
      clearTimeout(timer)
      void worker.terminate()
      act()
    }
    const timer = setTimeout(() => end(() => reject(tooMuch(`${TIMEOUT_MS / 1000} s`))), TIMEOUT_MS)
    worker.once('message', (answer: Answer) =>
      end(() => {
        if ('plan' in answer) return resolve(answer.plan)
        const { message, hint, looked_for } = answer.refused
        return reject(new DetectionError(message, hint, looked_for))
      }),
    )
    worker.once('error', (error: NodeJS.ErrnoException) =>
      end(() => reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooMuch(`${MEMORY_MB} MiB`) : error)),
    )
    worker.once('exit', () =>
      end(() => reject(new Error('The thread of a detection ended without an answer.'))),
    )
  })
}

/**
 * Works out how a folder is built, in a thread of its own: whoever brings twenty thousand files holds up
 * nobody. From sources, where there is no built file of the thread, it is done here.
 */
export function detectApart(directory: string, overrides: DetectOptions): Promise<BuildPlan> {
  const file = join(dirname(process.argv[1] ?? ''), DETECT_WORKER)
  return existsSync(file) ? detectInThread(file, directory, overrides) : detectHere(directory, overrides)
}
