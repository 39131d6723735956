import { parentPort, workerData } from 'node:worker_threads'
import { startProber } from './probe.ts'

const { port, host_header } = workerData as { port: number; host_header: string }
const prober = startProber(port, host_header)
parentPort!.postMessage('probing')
parentPort!.once('message', async () => {
  await prober.stop()
  parentPort!.postMessage({ sent: prober.sent(), failures: prober.failures() })
  parentPort!.close()
})
