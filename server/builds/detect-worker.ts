import { parentPort } from 'node:worker_threads'
import { type DetectOptions, detect } from './detect.ts'
import { DetectionError } from './plan.ts'
import { openTree } from './source-tree.ts'

/** Entry of the thread that looks at one folder; the server is built with it as a file of its own. */
parentPort?.once('message', ({ directory, overrides }: { directory: string; overrides: DetectOptions }) => {
  try {
    parentPort?.postMessage({ plan: detect(openTree(directory), overrides) })
  } catch (error) {
    if (!(error instanceof DetectionError)) throw error
    const { message, hint, looked_for } = error
    parentPort?.postMessage({ refused: { message, hint, looked_for } })
  }
})
