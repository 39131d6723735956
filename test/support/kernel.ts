import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig, type Config } from '#server/kernel/config'
import { type Db, openDb } from '#server/kernel/db'
import { createLog } from '#server/kernel/log'
import { createSecrets, type Secrets } from '#server/kernel/secrets'
import type { Kernel } from '#server/platform/base'
import { kernel_folders } from './kernel-folders.ts'
import { createTestClock, type TestClock } from './clock.ts'
import { openMigratedDb } from './schema.ts'

export interface TestKernel extends Kernel {
  clock: TestClock
  /** Every line that the log wrote, as objects. */
  lines: Record<string, unknown>[]
  /** Closes the database and removes the data directory. */
  dispose(): void
}

/**
 * A kernel on a database in memory with every migration applied, and a data directory of its own. `fill` makes
 * the schema, and rows, in another way.
 */
export function createTestKernel(
  environment: Record<string, string> = {},
  fill?: (db: Db, secrets: Secrets) => void,
): TestKernel {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-test-'))
  kernel_folders.add(directory)
  const config: Config = loadConfig({
    PORTREEVE_DATA_DIR: directory,
    PORTREEVE_BASE_DOMAIN: 'apps.test',
    ...environment,
  })
  const lines: Record<string, unknown>[] = []
  const db = fill ? openDb(':memory:') : openMigratedDb()
  const secrets = createSecrets(Buffer.alloc(32, 7))
  fill?.(db, secrets)
  return {
    config,
    db,
    lines,
    clock: createTestClock(),
    log: createLog('json', 'debug', (line) => lines.push(JSON.parse(line) as Record<string, unknown>)),
    secrets,
    dispose() {
      db.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
