import type { Worker } from 'node:worker_threads'

export interface ThreadLimits {
  timeout_ms: number
  /** What is thrown when it takes longer. */
  tooLong(): Error
  /** What is thrown when it needs more memory than its limit. */
  tooLarge(): Error
  /** Said when the thread ends without an answer. */
  ended: string
  /** Whether the thread goes on after an answer. Default: it ends with it. */
  goes_on?: boolean
}

/** The next message of a thread. Throws what the thread failed with, which has ended then. */
export function answerOfThread<T>(worker: Worker, limits: ThreadLimits): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      clearTimeout(timer)
      worker.off('message', onMessage).off('exit', onExit)
      act()
    }
    const fail = (error: Error) =>
      settle(() => {
        void worker.terminate()
        reject(error)
      })
    const onMessage = (answer: T) =>
      settle(() => {
        if (limits.goes_on) worker.off('error', onError)
        else void worker.terminate()
        resolve(answer)
      })
    // Stays until the end of the thread: an error that nobody listens to would end this process.
    const onError = (error: NodeJS.ErrnoException) =>
      fail(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? limits.tooLarge() : error)
    const onExit = () => fail(new Error(limits.ended))
    const timer = setTimeout(() => fail(limits.tooLong()), limits.timeout_ms)
    worker.once('message', onMessage).on('error', onError).once('exit', onExit)
  })
}
