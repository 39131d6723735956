import { parentPort, workerData } from 'node:worker_threads'
import { type Delivered, readEvent } from './reading.ts'

/** Entry of the thread that reads one long delivery; the server is built with it as a file of its own. */
parentPort?.postMessage(readEvent(workerData as Delivered))
