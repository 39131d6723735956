import type { Worker } from 'node:worker_threads'

export interface ThreadLimits {
  timeout_ms: number
  /** What is thrown when it takes longer. */
  tooLong(): Error
  /** What is thrown when it needs more memory than its limit. */
  tooLarge(): Error
  /** Said when the thread ends without an answer. */
  ended: string
}

/** The first message of a thread, which ends with it. Throws what the thread failed with. */
export function answerOfThread<T>(worker: Worker, limits: ThreadLimits): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (act: () => void) => {
      clearTimeout(timer)
      void worker.terminate()
      act()
    }
    const timer = setTimeout(() => end(() => reject(limits.tooLong())), limits.timeout_ms)
    worker.once('message', (answer: T) => end(() => resolve(answer)))
    worker.once('error', (error: NodeJS.ErrnoException) =>
      end(() => reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? limits.tooLarge() : error)),
    )
    worker.once('exit', () => end(() => reject(new Error(limits.ended))))
  })
}
