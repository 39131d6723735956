import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export interface ProbeResult {
  sent: number
  failures: { at: string; why: string }[]
}

/**
 * Probes an app from a thread of its own, so that it goes on while the test waits for a command. Answers once it
 * has begun.
 */
export async function probeApart(
  port: number,
  host_header: string,
): Promise<{ stop(): Promise<ProbeResult> }> {
  const worker = new Worker(new URL('./probe-worker.ts', import.meta.url), {
    workerData: { port, host_header },
  })
  await once(worker, 'message')
  return {
    async stop() {
      worker.postMessage('stop')
      const [result] = (await once(worker, 'message')) as [ProbeResult]
      return result
    },
  }
}
