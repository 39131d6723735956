import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { migrations } from '#migrations'
import { directories } from '#server/kernel/directories'
import { loadConfig, type Config } from '#server/kernel/config'
import { openDb } from '#server/kernel/db'
import { lockDirectory, LockedError } from '#server/kernel/lock'
import { createLog } from '#server/kernel/log'
import { createSecrets, finishRotation, loadNextKey, prepareRotation } from '#server/kernel/secrets'
import { openKernel } from '#server/start/open-kernel'
import { createSealing } from '#server/rotation/sealing'
import { CommandError, createProgress, say } from './terminal.ts'

const DONE =
  'Every stored secret is sealed with the new key, and the old key is gone. Backups from before can only be read with a copy of the old key.'
const PREPARED = {
  prepared: 'A new key is ready.',
  under_way: 'A rotation was begun before; this goes on with it.',
}
const ASK_MS = 500

/** Takes the data directory; undefined while a server has it. */
function lock(directory: string): (() => void) | undefined {
  try {
    return lockDirectory(directory)
  } catch (error) {
    if (error instanceof LockedError) return undefined
    throw error
  }
}

/** What is sealed, as the modules say; they are loaded by this command alone. */
const sealedColumns = async () => (await import('#server/modules')).SEALED_COLUMNS

/**
 * Does the whole rotation in this process. What a crash leaves, the next call or the next start of the server
 * goes on with.
 */
async function rotateHere(config: Config, key_file: string): Promise<void> {
  say(PREPARED[prepareRotation(key_file)])
  const { db, secrets } = openKernel(config, createLog('text', 'error'), migrations)
  const progress = createProgress()
  try {
    const sealing = createSealing({ db, secrets, columns: await sealedColumns() })
    const total = sealing.left()
    let sealed = 0
    await sealing.seal(new AbortController().signal, (count) =>
      progress.show(`Sealed ${(sealed += count)} of ${total} secrets.`),
    )
    progress.end()
    const left = sealing.left()
    if (left > 0)
      throw new CommandError(
        `${left} secrets are still sealed with the old key, so it is kept. Call this again.`,
      )
    finishRotation(key_file)
    say(`Sealed ${sealed} secrets. ${DONE}`)
  } catch (error) {
    progress.end()
    if (error instanceof CommandError) throw error
    throw new CommandError(
      `${(error as Error).message} The old key is kept; nothing is lost. Mend or remove the secret that cannot be read, then call this again.`,
      1,
      { cause: error },
    )
  } finally {
    db.close()
  }
}

/**
 * Follows the work of the server until the new key is in place. Ends early only with this command: the
 * rotation goes on.
 */
async function follow(config: Config, key_file: string): Promise<void> {
  const next = loadNextKey(key_file)
  if (!next) return say(DONE)
  const secrets = createSecrets(next)
  const db = openDb(join(config.data_directory, 'portreeve.db'))
  const sealing = createSealing({ db, secrets, columns: await sealedColumns() })
  const progress = createProgress()
  const failures = () =>
    db
      .sql(`SELECT failure FROM jobs WHERE subject = ? AND status = 'failed' ORDER BY rowid DESC LIMIT 1`)
      .pluck()
      .get(secrets.key_id) as string | undefined
  const failed_before = failures()
  try {
    const total = sealing.left()
    while (existsSync(`${key_file}.next`)) {
      const left = sealing.left()
      progress.show(
        left === total ? 'Waiting for Portreeve to restart.' : `Sealed ${total - left} of ${total} secrets.`,
      )
      const failure = failures()
      if (failure && failure !== failed_before)
        throw new CommandError(
          `The rotation stopped: ${(JSON.parse(failure) as { message: string }).message} The old key is kept. Mend or remove the secret that cannot be read, then restart Portreeve.`,
        )
      await delay(ASK_MS)
    }
  } finally {
    progress.end()
    db.close()
  }
  say(DONE)
}

/** `portreeve rotate-key`: a new key for stored secrets, with Portreeve running or not. */
export async function rotateKey(
  env: Record<string, string | undefined>,
  { wait }: { wait: boolean },
): Promise<void> {
  const config = loadConfig(env)
  if (config.secret_key !== undefined) {
    throw new CommandError(
      'The key of this installation is given as PORTREEVE_SECRET_KEY. Only a key in a file can be rotated, because this command cannot change the environment of Portreeve.',
    )
  }
  const key_file = join(directories(config.data_directory).keys, 'secret.key')
  if (!existsSync(key_file))
    throw new CommandError(
      `There is no key to rotate at ${key_file}. Set PORTREEVE_DATA_DIR to the data directory of Portreeve.`,
    )
  const unlock = lock(config.data_directory)
  if (unlock) {
    try {
      return await rotateHere(config, key_file)
    } finally {
      unlock()
    }
  }
  say(PREPARED[prepareRotation(key_file)])
  say(
    'Portreeve is running with the old key. Restart it (systemctl restart portreeve, or ./install.sh --stop and ./install.sh): it then seals everything anew while it works.',
  )
  if (wait) await follow(config, key_file)
}
