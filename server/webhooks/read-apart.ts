import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { answerOfThread } from '#server/kernel/thread-answer'
import { threadFile } from '#server/kernel/thread-file'
import { createUserPool } from '#server/kernel/user-pool'
import { type ForgeEvent, other } from './forges/forge.ts'
import { type Delivered, readEvent } from './reading.ts'

/** File of the thread, beside the built server. */
export const WEBHOOK_WORKER = 'webhook.mjs'
/** Bytes that are read at once: nearly every delivery has fewer, and a thread takes longer to start. */
const SHORT = 128 * 1024
const TIMEOUT_MS = 20_000
const MEMORY_MB = 256
/** Long ones are read one after the other, those of different projects in turn. */
const POOL = {
  at_once: 1,
  at_once_per_user: 1,
  waiting_per_user: 50,
  waiting: 500,
  refusal: 'Too many large deliveries are being read. Send this one again in a moment.',
}

/** The bytes move over to the thread, and are gone here. */
function readInThread(file: string, delivered: Delivered): Promise<ForgeEvent> {
  const worker = new Worker(file, {
    workerData: delivered,
    transferList: [delivered.body.buffer as ArrayBuffer],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  })
  const tooInvolved = () => new RangeError('The delivery is too involved to be read.')
  return answerOfThread<ForgeEvent>(worker, {
    timeout_ms: TIMEOUT_MS,
    tooLong: tooInvolved,
    tooLarge: tooInvolved,
    ended: 'The thread of a delivery ended without an answer.',
  })
}

/**
 * Reads deliveries; long ones, which forges may make of 25 MiB, in a thread: whoever pushes decides how long they
 * are. From sources, where there is no built file of the thread, it is done here.
 */
export function createReader(file = threadFile(WEBHOOK_WORKER)) {
  const pool = createUserPool(POOL)
  return (project_id: string, delivered: Delivered): Promise<ForgeEvent> | ForgeEvent => {
    const { byteLength, buffer } = delivered.body
    if (byteLength <= SHORT || !existsSync(file)) return readEvent(delivered)
    // Bytes that lie in memory which others use, too, do not move.
    const body = byteLength === buffer.byteLength ? delivered.body : new Uint8Array(delivered.body)
    return pool.run(project_id, () =>
      readInThread(file, { ...delivered, body }).catch((error: unknown) => {
        if (error instanceof RangeError) return other(error.message)
        throw error
      }),
    )
  }
}
