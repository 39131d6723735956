import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { answerOfThread } from '#server/kernel/thread-answer'
import { threadFile } from '#server/kernel/thread-file'
import type { DetectOptions } from './detect.ts'
import { type BuildPlan, DetectionError } from './plan.ts'

/** File of the thread, beside the built server. */
export const DETECT_WORKER = 'detect.mjs'
const TIMEOUT_MS = 60_000
const MEMORY_MB = 256
/** Characters of a plan, which is kept with its deployment for good. */
const MOST_OF_PLAN = 512 * 1024
/** How long a thread waits that was started ahead, or that has done its work: a minute later it is none's gain. */
const SPARE_MS = 60_000

type Answer = { plan: BuildPlan } | { refused: Pick<DetectionError, 'message' | 'hint' | 'looked_for'> }

const tooMuch = (what: string) =>
  new DetectionError(
    `The source is too large to be looked at: it took more than ${what}.`,
    'Name a smaller base_directory, or bring a Dockerfile.',
    [],
  )

/** The stacks and their parsers are loaded by the first build: a start needs none of them. */
async function detectHere(directory: string, overrides: DetectOptions): Promise<BuildPlan> {
  const [{ detect }, { openTree }, { withRepository }] = await Promise.all([
    import('./detect.ts'),
    import('./source-tree.ts'),
    import('./project-settings.ts'),
  ])
  return detect(await openTree(directory), await withRepository(directory, overrides))
}

/** Loading what detection is made of takes longer than looking at a usual source. */
const start = (file: string): Worker =>
  new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB } })

/** A thread that is loaded when it is needed, and goes when it was not. */
interface Spare {
  worker: Worker
  timer: NodeJS.Timeout
  /** Whose sources it has looked at: those of others are never looked at by it. Undefined: nobody's. */
  owner: string | undefined
}
let spare: Spare | undefined

const nothing = () => {}

/** Keeps a thread for the next source, unless there is one already. */
function keepSpare(worker: Worker, owner?: string): void {
  if (spare) return void worker.on('error', nothing).terminate()
  worker.unref()
  spare = { worker, owner, timer: setTimeout(dropSpare, SPARE_MS).unref() }
  // Whoever detects next starts another one, and hears why it does not start.
  worker.once('error', dropSpare).once('exit', dropSpare)
}
function takeSpare(): Worker | undefined {
  const worker = spare?.worker
  clearTimeout(spare?.timer)
  spare = undefined
  return worker?.off('error', dropSpare).off('exit', dropSpare)
}
function dropSpare(): void {
  void takeSpare()?.on('error', nothing).terminate()
}
const isFor = (owner: string | undefined) => spare && (spare.owner === undefined || spare.owner === owner)
const fileOfThread = () => threadFile(DETECT_WORKER)

/**
 * Says that a source will be looked at in a moment: what that needs is loaded meanwhile, in its thread.
 * @param owner whose source it is.
 */
export function prepareDetection(owner: string, file = fileOfThread()): void {
  if (isFor(owner)) return void spare?.timer.refresh()
  if (!existsSync(file)) return
  dropSpare()
  keepSpare(start(file))
}

async function detectInThread(
  file: string,
  directory: string,
  overrides: DetectOptions,
  owner: string | undefined,
): Promise<BuildPlan> {
  const worker = (isFor(owner) ? takeSpare() : undefined) ?? start(file)
  worker.ref()
  const answering = answerOfThread<Answer>(worker, {
    timeout_ms: TIMEOUT_MS,
    tooLong: () => tooMuch(`${TIMEOUT_MS / 1000} s`),
    tooLarge: () => tooMuch(`${MEMORY_MB} MiB`),
    ended: 'The thread of a detection ended without an answer.',
    goes_on: owner !== undefined,
  })
  worker.postMessage({ directory, overrides })
  const answer = await answering
  if (owner !== undefined) keepSpare(worker, owner)
  if ('plan' in answer) return answer.plan
  const { message, hint, looked_for } = answer.refused
  throw new DetectionError(message, hint, looked_for)
}

/**
 * Works out how a folder is built, in a thread of its own: whoever brings twenty thousand files holds up
 * nobody. From sources, where there is no built file of the thread, it is done here.
 *
 * @param owner whose folder it is: the thread is kept for a minute, for their next one. Nobody who deploys
 * again in a moment waits for another thread to load.
 */
export async function detectApart(
  directory: string,
  overrides: DetectOptions,
  { owner, file = fileOfThread() }: { owner?: string; file?: string } = {},
): Promise<BuildPlan> {
  const plan = await (existsSync(file)
    ? detectInThread(file, directory, overrides, owner)
    : detectHere(directory, overrides))
  if (JSON.stringify(plan).length <= MOST_OF_PLAN) return plan
  throw new DetectionError(
    'The Dockerfile or a command of the source is too long to be kept with each deployment.',
    'Put what is long into a script of the repository.',
    [],
  )
}
