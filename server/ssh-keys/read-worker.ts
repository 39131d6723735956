import { parentPort, workerData } from 'node:worker_threads'
import { readPrivateKey, SshKeyError } from './openssh.ts'
import type { GivenKey } from './read-apart.ts'

/** Entry of the thread that opens one key; the server is built with it as a file of its own. */
async function read({ text, passphrase, comment }: GivenKey) {
  try {
    parentPort?.postMessage({ key: await readPrivateKey(text, passphrase, comment) })
  } catch (error) {
    if (!(error instanceof SshKeyError)) throw error
    parentPort?.postMessage({ refused: error.message })
  }
}
// What is rejected here ends the thread, and whoever asked it hears of the error.
void read(workerData as GivenKey)
