import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createEvents } from '#server/kernel/events'
import { createJobs } from '#server/kernel/jobs/jobs'
import {
  createSecrets,
  finishRotation,
  loadMasterKey,
  loadNextKey,
  prepareRotation,
  SecretUnreadableError,
} from '#server/kernel/secrets'
import { createKeyRotation } from '#server/rotation/rotation'
import { createSealing } from '#server/rotation/sealing'
import { SEALED_COLUMNS } from '#server/modules'
import { createTestApi, type TestApi } from '#test/support/api'
import { createTestKernel } from '#test/support/kernel'
import { ROOT } from '#test/support/routes'

let api: TestApi | undefined
afterEach(async () => {
  await api?.close()
  api = undefined
})

/** Seals something into every listed column with the key of the test kernel. */
async function filled(): Promise<{ api: TestApi; plain: () => string[] }> {
  api = await createTestApi({ jobs: false })
  const { kernel } = api
  const developer = api.as('developer')
  for (let i = 0; i < 120; i += 1)
    await developer.post('/api/git-credentials', {
      name: 'x',
      host: `h${i}.example.com`,
      token: `token number ${i}`,
    })
  await developer.post('/api/ssh-keys/generate', { name: 'key' }, { 'idempotency-key': 'one' })
  const user = api.actor('developer').user_id
  const seal = (text: string) => kernel.secrets.seal('plain text', text)
  kernel.db
    .sql('UPDATE users SET totp_seed = ?, totp_pending = ? WHERE id = ?')
    .run(seal(`users/totp_seed/${user}`), seal(`users/totp_pending/${user}`), user)
  kernel.db
    .sql(`INSERT INTO registries VALUES ('reg_1', 'x', 'x', 'x', ?, '', '', '')`)
    .run(seal('registries/password/reg_1'))
  api.fakes.git.commit('https://git.example.com/a/b.git', 'main', { 'index.html': 'x' })
  const app = (await developer.post('/api/apps', { name: 'app', git_url: 'https://git.example.com/a/b.git' }))
    .body.data
  const deployment = (await developer.get('/api/deployments')).body.data[0]
  kernel.db
    .sql(
      `INSERT INTO releases (id, app_id, deployment_id, image_id, settings, environment, variables, files, services, configuration, created_at) VALUES ('rel_1', ?, ?, 'x', '{}', ?, ?, ?, ?, '{}', '')`,
    )
    .run(
      app.id,
      deployment.id,
      seal('releases/environment/rel_1'),
      seal('releases/variables/rel_1'),
      seal('releases/files/rel_1'),
      seal('releases/services/rel_1'),
    )
  kernel.db
    .sql(
      `INSERT INTO preview_settings (app_id, enabled, max_previews, domain_pattern, forks, databases, env, updated_at)
       VALUES (?, 1, 3, '', 'never', 0, ?, '')`,
    )
    .run(app.id, seal(`preview_settings/env/${app.id}`))
  await developer.post(`/api/apps/${app.id}/mounts`, { path: '/etc/x', content: 'x' })
  await developer.post('/api/cron-jobs', {
    app_id: app.id,
    expression: '@daily',
    http: { url: 'https://example.com/', headers: { Authorization: 'Bearer of nothing' } },
  })
  const database = (await developer.post('/api/databases', { name: 'db', engine: 'postgres' })).body.data
  for (const column of ['password', 'next_password', 'previous_password', 'admin_password'])
    kernel.db
      .sql(`UPDATE databases SET ${column} = ? WHERE id = ?`)
      .run(seal(`databases/${column}/${database.id}`), database.id)
  await developer.post(`/api/apps/${app.id}/env`, { key: 'A', value: 'a', preview_value: 'b' })
  kernel.db
    .sql(
      `INSERT INTO certificates (id, project_id, name, names, source, status, key_type, private_key, next_key, created_at, updated_at) SELECT 'crt_1', id, 'x', '[]', 'acme', 'active', 'ecdsa', ?, ?, '', '' FROM projects`,
    )
    .run(seal('certificates/private_key/crt_1'), seal('certificates/next_key/crt_1'))
  kernel.db
    .sql(
      `INSERT INTO acme_accounts (directory_url, private_key, next_key, keyed_at, created_at) VALUES ('https://ca.test/dir', ?, ?, '', '')`,
    )
    .run(
      seal('acme_accounts/private_key/https://ca.test/dir'),
      seal('acme_accounts/next_key/https://ca.test/dir'),
    )
  kernel.db
    .sql(
      `INSERT INTO webhooks (id, project_id, kind, name, config, token, secret, created_at, updated_at) SELECT 'whk_1', id, 'git', 'x', ?, ?, ?, '', '' FROM projects`,
    )
    .run(...['config', 'token', 'secret'].map((column) => seal(`webhooks/${column}/whk_1`)))
  kernel.db.sql(`INSERT INTO settings VALUES ('smtp', '{}', ?, '')`).run(seal('settings/secrets/smtp'))
  kernel.db
    .sql(
      `INSERT INTO storage_providers (id, name, kind, config, secrets, passphrase, created_at, updated_at)
       VALUES ('dst_1', 'Bucket', 's3', '{}', ?, ?, '', '')`,
    )
    .run(seal('storage_providers/secrets/dst_1'), seal('storage_providers/passphrase/dst_1'))
  kernel.db
    .sql(
      `INSERT INTO backups (id, target, target_name, project_id, status, trigger, destination_id, object_key, encrypted, data_key, created_at)
       VALUES ('bkp_1', 'platform', '', 'platform', 'succeeded', 'manual', 'dst_1', 'k', 1, ?, '')`,
    )
    .run(seal('backups/data_key/bkp_1'))
  kernel.db
    .sql(
      `INSERT INTO log_archives (id, database_id, project_id, volume_id, destination_id, encrypted, data_key, version, database_name, days, status, created_at)
       VALUES ('arc_1', 'db_1', 'prj_1', 'vol_1', 'dst_1', 1, ?, '17', 'db', 7, 'active', '')`,
    )
    .run(seal('log_archives/data_key/arc_1'))
  kernel.db.sql(`INSERT INTO meta VALUES ('secret_check', ?)`).run(seal('meta/secret_check'))
  const all = () =>
    SEALED_COLUMNS.flatMap((one) =>
      (
        kernel.db
          .sql(`SELECT *, ${one.column} AS sealed FROM ${one.table} WHERE ${one.column} LIKE 'v1.%'`)
          .all() as Record<string, string>[]
      ).map((row) => [one.context(row), row.sealed!] as const),
    )
  return {
    api,
    plain: () => all().map(([context, sealed]) => createSecrets(Buffer.alloc(32, 9)).open(sealed, context)),
  }
}

/** Tables with several sealed columns, whose contexts are written once; the test above fills each of them. */
const TOLD_BY_PLACE = new Set(['users.${column}', 'databases.${column}', 'idempotency.${column}'])
/** What files that seal something also say with a slash in it. */
const MEDIA_TYPES = new Set(['application.json'])

describe('F24: rotating the key of secrets', () => {
  it('seals every column anew, and goes on after a crash in the middle', async () => {
    const { api: test, plain } = await filled()
    const { kernel } = test
    for (const { table, column } of SEALED_COLUMNS)
      expect([
        `${table}.${column}`,
        kernel.db.sql(`SELECT count(*) > 0 FROM ${table} WHERE ${column} LIKE 'v1.%'`).pluck().get(),
      ]).toEqual([`${table}.${column}`, 1])
    const secrets = createSecrets(Buffer.alloc(32, 9), Buffer.alloc(32, 7))
    let finished = 0
    /**
     * @param survives how many values are sealed before the process dies; the batch of the next one is lost.
     */
    const begin = (survives = Infinity) => {
      let sealed = 0
      const mortal = {
        ...secrets,
        seal: (text: string, context: string) => {
          if ((sealed += 1) > survives) throw new Error('killed')
          return secrets.seal(text, context)
        },
      }
      const jobs = createJobs({ db: kernel.db, clock: kernel.clock, log: kernel.log, pools: {} })
      const rotation = createKeyRotation({
        db: kernel.db,
        jobs,
        log: kernel.log,
        secrets: mortal,
        columns: SEALED_COLUMNS,
        finish: () => (finished += 1),
      })
      kernel.db.sql(`DELETE FROM jobs WHERE kind <> 'secrets.rotate'`).run()
      rotation.start()
      rotation.start()
      jobs.start()
      return { jobs, rotation }
    }
    const first = begin(110)
    const whole = first.rotation.left()
    await expect.poll(first.rotation.left).toBe(whole - 108)
    await first.jobs.stop()
    expect(finished).toBe(0)
    const second = begin()
    await second.jobs.idle()
    expect([finished, second.rotation.left()]).toEqual([1, 0])
    expect(kernel.db.sql(`SELECT count(*), min(status) FROM jobs`).raw().get()).toEqual([1, 'succeeded'])
    expect(plain().length).toBeGreaterThan(125)
    expect(createEvents(kernel.db, kernel.clock, kernel.log).latest()).toBeGreaterThan(0)
  })
  it('looks at each row twice, to seal it and to see that none is left, however many there are', async () => {
    const { db, secrets: before, dispose } = createTestKernel()
    db.raw.exec(
      'CREATE TABLE kept (scope TEXT, key TEXT, sealed TEXT, PRIMARY KEY (scope, key)) WITHOUT ROWID',
    )
    const context = ({ scope = '', key = '' }: Record<string, string>) => `seen/sealed/${scope}/${key}`
    const ROWS = 2_000
    db.tx(() => {
      for (let n = 0; n < ROWS; n += 1) {
        const row = { scope: `s${n % 7}`, key: `k${n}` }
        db.sql('INSERT INTO kept VALUES (?, ?, ?)').run(row.scope, row.key, before.seal('x', context(row)))
      }
    })
    let looks = 0
    db.raw.pragma('trusted_schema = ON')
    db.raw.function('looked', (text: string) => ((looks += 1), text))
    db.raw.exec(`CREATE VIEW seen AS SELECT scope, key, looked(sealed) AS sealed FROM kept;
      CREATE TRIGGER seen_update INSTEAD OF UPDATE ON seen BEGIN
        UPDATE kept SET sealed = NEW.sealed WHERE scope = OLD.scope AND key = OLD.key; END`)
    const sealing = createSealing({
      db,
      secrets: createSecrets(Buffer.alloc(32, 9), Buffer.alloc(32, 7)),
      columns: [{ table: 'seen', column: 'sealed', key: ['scope', 'key'], context }],
    })
    const { signal } = new AbortController()
    let sealed = 0
    await sealing.seal(signal, (count) => (sealed += count))
    expect([sealed, await sealing.leftSoon(signal)]).toEqual([ROWS, 0])
    // The comparison, the value and the update look once each.
    expect(looks).toBeLessThan(10 * ROWS)
    dispose()
  })
  it('knows every column that the code seals', () => {
    const files = readdirSync(join(ROOT, 'server'), { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !name.startsWith('kernel/') && !name.startsWith('rotation/'),
    )
    const sealing = files
      .map((name) => readFileSync(join(ROOT, 'server', name), 'utf8'))
      .filter((text) => /\.(seal|open)\(/.test(text) && /secrets/.test(text))
    const used = sealing.flatMap((text) =>
      [...text.matchAll(/[`']([a-z_]+)\/([a-z_]+|\$\{column\})(?:\/\$\{|')/g)].map(([, table, column]) =>
        table === 'meta' ? 'meta.value' : `${table}.${column}`,
      ),
    )
    const listed = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`)
    expect(used.length).toBeGreaterThanOrEqual(7)
    expect(
      [...new Set(used)].filter(
        (name) => !listed.includes(name) && !TOLD_BY_PLACE.has(name) && !MEDIA_TYPES.has(name),
      ),
    ).toEqual([])
  })
  it('keeps the old key when one secret cannot be opened', async () => {
    const { api: test } = await filled()
    const { kernel } = test
    kernel.db.sql(`UPDATE registries SET password = 'v1.deadbeef.AAAA.AAAA'`).run()
    const secrets = createSecrets(Buffer.alloc(32, 9), Buffer.alloc(32, 7))
    const jobs = createJobs({ db: kernel.db, clock: kernel.clock, log: kernel.log, pools: {} })
    let finished = false
    const rotation = createKeyRotation({
      db: kernel.db,
      jobs,
      log: kernel.log,
      secrets,
      columns: SEALED_COLUMNS.filter(({ table }) => table === 'registries'),
      finish: () => (finished = true),
    })
    expect(() => secrets.open('v1.deadbeef.AAAA.AAAA', 'registries/password/reg_1')).toThrow(
      SecretUnreadableError,
    )
    kernel.db.sql('DELETE FROM jobs').run()
    rotation.start()
    jobs.start()
    await jobs.idle()
    expect([finished, kernel.db.sql('SELECT status FROM jobs').pluck().get()]).toEqual([false, 'failed'])
  })
  it('keeps the new key in a file of its own until everything is sealed with it', async () => {
    api = await createTestApi({ jobs: false })
    const path = join(api.kernel.config.data_directory, 'secret.key')
    const old = loadMasterKey(path, undefined, false)
    expect(loadNextKey(path)).toBeUndefined()
    expect([prepareRotation(path), prepareRotation(path)]).toEqual(['prepared', 'under_way'])
    const next = loadNextKey(path)!
    expect(next.equals(old)).toBe(false)
    const sealed = createSecrets(old).seal('text', 'context')
    expect(createSecrets(next, old).open(sealed, 'context')).toBe('text')
    expect(() => createSecrets(next).open(sealed, 'context')).toThrow(SecretUnreadableError)
    finishRotation(path)
    finishRotation(path)
    expect([loadMasterKey(path, undefined, true).equals(next), existsSync(`${path}.next`)]).toEqual([
      true,
      false,
    ])
  })
})
