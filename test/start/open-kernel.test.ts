import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '#server/kernel/config'
import { createLog } from '#server/kernel/log'
import { prepareDataDirectory } from '#server/start/data-directory'
import { openKernel } from '#server/start/open-kernel'
import { ROOT } from '#test/support/routes'
import { readMigrations } from '../../scripts/read-migrations.ts'

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'ptr-kernel-'))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const database = () => join(data, 'portreeve.db')
const key_file = () => join(data, 'keys/secret.key')
/** As a start does it, up to the open kernel. */
function open(env: Record<string, string> = {}) {
  prepareDataDirectory(data)
  return openKernel(
    loadConfig({ PORTREEVE_DATA_DIR: data, ...env }),
    createLog('text', 'error'),
    readMigrations(ROOT),
  )
}
const start = (env?: Record<string, string>) => open(env).db.close()

describe('an installation whose database got lost', () => {
  it.each<[how: string, lose: () => void]>([
    ['gone', () => rmSync(database())],
    ['cut off at its beginning', () => truncateSync(database(), 0)],
  ])('never begins anew by itself: the file is %s', (_how, lose) => {
    start()
    const key = readFileSync(key_file(), 'utf8')
    lose()
    for (const suffix of ['-wal', '-shm']) rmSync(database() + suffix, { force: true })
    expect(() => start()).toThrow(
      `the database ${database()} is empty, but ${key_file()} is of an installation that had one.`,
    )
    expect([statSync(database()).size <= 4096, readFileSync(key_file(), 'utf8')]).toEqual([true, key])
  })
  it('nor where its key is given by the environment', () => {
    const env = { PORTREEVE_SECRET_KEY: 'a passphrase of at least 32 characters' }
    start(env)
    mkdirSync(join(data, 'ingress'))
    rmSync(database())
    expect(() => start(env)).toThrow(
      `the database ${database()} is empty, but ${join(data, 'ingress')} is of`,
    )
  })
  it('is taken for no new one: that has none of its folders, and starts', () => {
    prepareDataDirectory(data)
    writeFileSync(join(data, 'portreeve.env'), '')
    start()
    start()
  })
})

it('a first start that was ended while it wrote its key is done again by the next one', () => {
  const script = `
    import { loadMasterKey } from '${join(ROOT, 'server/kernel/secrets.ts')}'
    loadMasterKey(process.argv[1], undefined, false)`
  // The kernel ends who writes beyond its limit, which here is the first byte, as a power cut would.
  expect(() =>
    execFileSync(
      'prlimit',
      ['--fsize=0', '--core=0', process.execPath, '--input-type=module', '-e', script, key_file()],
      {
        stdio: 'ignore',
      },
    ),
  ).toThrow()
  start()
  start()
})
