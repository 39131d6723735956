import { parentPort, workerData } from 'node:worker_threads'
import { dockerfileSources } from './dockerfile-sources.ts'

/** Entry of the thread that reads one long Dockerfile; the server is built with it as a file of its own. */
const { dockerfile, build_args } = workerData as {
  dockerfile: string
  build_args: Record<string, string>
}
try {
  parentPort?.postMessage({ sources: dockerfileSources(dockerfile, build_args) })
} catch (error) {
  if (!(error instanceof RangeError)) throw error
  parentPort?.postMessage({ refused: error.message })
}
