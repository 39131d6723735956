import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createSecrets, loadMasterKey, loadNextKey } from '#server/kernel/secrets'
import { MASK } from '#server/kernel/schemas'
import { eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { fillSealedColumns, openedWith, sealedValues } from '#test/support/sealed-rows'
import { startSmtpServer, type TestSmtpServer } from '#test/support/smtp-server'

const LOGIN = { username: 'portreeve', password: 'the password of the mail server' }
const ROWS = 800
const program = join(
  dirname(process.env.PORTREEVE_ENTRY ?? join(ROOT, '.output/server/index.mjs')),
  'portreeve.mjs',
)
let smtp: TestSmtpServer
let server: Portreeve
beforeAll(async () => {
  smtp = await startSmtpServer({ security: 'none', login: LOGIN })
  server = await startPortreeve({
    env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: `localhost:${smtp.port}` },
  })
})
afterAll(async () => {
  await server?.dispose()
  await smtp?.close()
})

function rotateKey(...options: string[]) {
  const child = spawn(process.execPath, [program, 'rotate-key', ...options], {
    env: { PATH: process.env.PATH, PORTREEVE_DATA_DIR: server.data_directory },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  return {
    output: () => output,
    ended: new Promise<number | null>((resolve) => child.on('close', resolve)),
  }
}
const opened = <T>(read: (db: Database.Database) => T): T => {
  const db = new Database(join(server.data_directory, 'portreeve.db'))
  try {
    return read(db)
  } finally {
    db.close()
  }
}

it('settings hold at once and over a restart: mail goes out by the server that was set', async () => {
  const settings = {
    host: 'localhost',
    port: smtp.port,
    security: 'none',
    ...LOGIN,
    from: 'Portreeve <portreeve@example.com>',
  }
  expect(await server.call('PUT', '/api/settings/smtp', { ...settings, password: 'wrong' })).toMatchObject({
    status: 422,
  })
  expect((await server.call('PUT', '/api/settings/smtp', settings)).body.data).toMatchObject({
    host: 'localhost',
    password: MASK,
  })
  expect(
    (await server.call('POST', '/api/team/members', { email: 'ada@example.com' })).body.data,
  ).toMatchObject({
    sent: true,
    link: null,
  })
  await server.stop()
  await server.start()
  expect(
    (await server.call('POST', '/api/team/members', { email: 'grace@example.com' })).body.data,
  ).toMatchObject({
    sent: true,
  })
  expect(smtp.messages.map(({ to }) => to[0])).toEqual([
    'RCPT TO:<admin@example.test>',
    'RCPT TO:<ada@example.com>',
    'RCPT TO:<grace@example.com>',
  ])
  expect(server.output()).not.toContain(LOGIN.password)
})

it('F24: the key is replaced under a running server that is killed in the middle; every secret opens, and none with the old key', async () => {
  expect(
    (
      await server.call('POST', '/api/git-credentials', {
        name: 'forge',
        host: 'forge.example.com',
        token: 'a token of the forge',
      })
    ).status,
  ).toBe(201)
  expect(
    (await server.call('POST', '/api/ssh-keys/generate', { name: 'key' }, { 'idempotency-key': 'once' }))
      .status,
  ).toBe(201)
  const key_file = join(server.data_directory, 'keys', 'secret.key')
  const old = loadMasterKey(key_file, undefined, true)
  opened((db) => fillSealedColumns(db, createSecrets(old), ROWS))
  const names = new Set(opened(sealedValues).map(({ name }) => name))

  const waiting = rotateKey('--wait')
  await eventually('The command waiting for the restart', () =>
    waiting.output().includes('Waiting') ? true : undefined,
  )
  const next = loadNextKey(key_file)!
  const isOld = (id: string) =>
    opened((db) => sealedValues(db).filter(({ sealed }) => sealed.startsWith(`v1.${id}.`)).length)
  const whole = isOld(createSecrets(old).key_id)
  await server.kill()
  await server.start()
  await eventually('The first batches being sealed', () =>
    isOld(createSecrets(old).key_id) < whole ? true : undefined,
  )
  await server.kill()
  // Wherever it was killed: with both keys, nothing is lost.
  const both = existsSync(`${key_file}.next`) ? createSecrets(next, old) : createSecrets(next)
  expect(openedWith(both, opened(sealedValues))).not.toContain('unreadable')
  await server.start()
  expect([await waiting.ended, waiting.output()]).toEqual([0, expect.stringContaining('the old key is gone')])

  const values = opened(sealedValues)
  expect(new Set(values.map(({ name }) => name))).toEqual(names)
  expect(loadMasterKey(key_file, undefined, true).equals(next)).toBe(true)
  expect(openedWith(createSecrets(next), values)).not.toContain('unreadable')
  expect(new Set(openedWith(createSecrets(old), values))).toEqual(new Set(['unreadable']))
  // What uses a secret still does.
  expect(
    (await server.call('POST', '/api/team/members', { email: 'new@example.com' })).body.data,
  ).toMatchObject({
    sent: true,
  })
  await server.stop()
  expect(await rotateKey().ended).toBe(0)
  await server.start()
  expect(
    (await server.call('POST', '/api/team/members', { email: 'last@example.com' })).body.data,
  ).toMatchObject({
    sent: true,
  })
})
