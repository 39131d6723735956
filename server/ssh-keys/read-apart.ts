import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { answerOfThread } from '#server/kernel/thread-answer'
import { threadFile } from '#server/kernel/thread-file'
import { createUserPool } from '#server/kernel/user-pool'
import { readPrivateKey, SshKeyError, type SshKeyPair } from './openssh.ts'

/** File of the thread, beside the built server. */
export const SSH_KEY_WORKER = 'ssh-key.mjs'
/** A passphrase of a hundred rounds takes half of it in a server that idles, whose code is not compiled for speed. */
const TIMEOUT_MS = 60_000
const MEMORY_MB = 128
/** One after the other, those of different users in turn. */
const POOL = {
  at_once: 1,
  at_once_per_user: 1,
  waiting_per_user: 3,
  waiting: 50,
  refusal: 'Too many keys with a passphrase are being read. Send this one again in a moment.',
}

/** A private key as somebody sent it. */
export interface GivenKey {
  text: string
  passphrase: string | undefined
  comment: string
}
type Answer = { key: SshKeyPair } | { refused: string }

async function readInThread(file: string, given: GivenKey): Promise<SshKeyPair> {
  const worker = new Worker(file, {
    workerData: given,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  })
  const tooInvolved = () => new SshKeyError('has a passphrase that takes too long to try.')
  const answer = await answerOfThread<Answer>(worker, {
    timeout_ms: TIMEOUT_MS,
    tooLong: tooInvolved,
    tooLarge: tooInvolved,
    ended: 'The thread of an SSH key ended without an answer.',
  })
  if ('key' in answer) return answer.key
  throw new SshKeyError(answer.refused)
}

/**
 * Reads private keys; those with a passphrase in a thread, since the usual rounds of OpenSSH are seconds of work. From
 * sources, where there is no built file of the thread, it is done here.
 */
export function createKeyReader(file = threadFile(SSH_KEY_WORKER)) {
  const pool = createUserPool(POOL)
  return (user_id: string, given: GivenKey): Promise<SshKeyPair> =>
    given.passphrase === undefined || !existsSync(file)
      ? readPrivateKey(given.text, given.passphrase, given.comment)
      : pool.run(user_id, () => readInThread(file, given))
}
