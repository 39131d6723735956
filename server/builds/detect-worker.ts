import { parentPort } from 'node:worker_threads'
import { type DetectOptions, detect } from './detect.ts'
import { DetectionError } from './plan.ts'
import { withRepository } from './project-settings.ts'
import { openTree } from './source-tree.ts'

/** Entry of the thread that looks at one folder after the other; the server is built with it as a file of its own. */
async function look({ directory, overrides }: { directory: string; overrides: DetectOptions }) {
  try {
    const options = await withRepository(directory, overrides)
    parentPort?.postMessage({ plan: detect(await openTree(directory), options) })
  } catch (error) {
    if (!(error instanceof DetectionError)) throw error
    const { message, hint, looked_for } = error
    parentPort?.postMessage({ refused: { message, hint, looked_for } })
  }
}
// What is rejected here ends the thread, and whoever asked it hears of the error.
parentPort?.on('message', (requested) => void look(requested))
