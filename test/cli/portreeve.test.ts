import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { lockDirectory } from '#server/kernel/lock'
import { openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { createSecrets, loadMasterKey, loadNextKey } from '#server/kernel/secrets'
import { fillSealedColumns, openedWith, sealedValues } from '#test/support/sealed-rows'
import { ROOT } from '#test/support/routes'
import { bundleCommandLine } from '../../cli/build-module.ts'
import { readMigrations } from '../../scripts/read-migrations.ts'

const built = mkdtempSync(join(tmpdir(), 'portreeve-cli-'))
const program = join(built, 'portreeve.mjs')
beforeAll(async () => {
  symlinkSync(join(ROOT, 'node_modules'), join(built, 'node_modules'))
  await bundleCommandLine(ROOT, program)
})
afterAll(() => rmSync(built, { recursive: true, force: true }))

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'portreeve-data-'))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

interface Run {
  child: ChildProcess
  output: () => string
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>
}
function start(args: string[], env: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: built,
    env: { PATH: process.env.PATH, PORTREEVE_DATA_DIR: data, ...env },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  return {
    child,
    output: () => stdout,
    ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr }))),
  }
}
const run = (args: string[], env?: Record<string, string>) => start(args, env).ended
const key_file = () => join(data, 'keys', 'secret.key')

/** A data directory as a stopped server leaves it, with so many secrets in every sealed column. */
function fill(rows: number) {
  mkdirSync(join(data, 'keys'), { mode: 0o700 })
  const old = loadMasterKey(key_file(), undefined, false)
  const db = openDb(join(data, 'portreeve.db'))
  migrate(db, readMigrations(ROOT))
  const secrets = createSecrets(old)
  db.sql(`INSERT INTO meta VALUES ('secret_check', ?)`).run(secrets.seal('portreeve', 'meta/secret_check'))
  const count = fillSealedColumns(db.raw, secrets, rows) + 1
  db.close()
  return { old, count }
}
function values() {
  const db = openDb(join(data, 'portreeve.db'))
  try {
    return sealedValues(db.raw)
  } finally {
    db.close()
  }
}
const current = () => createSecrets(loadMasterKey(key_file(), undefined, true))

describe('portreeve', () => {
  it.each([
    [[], 0],
    [['--help'], 0],
    [['rotate-key', '--help'], 0],
    [['--version'], 0],
    [['launch'], 2],
    [['rotate-key', '--now'], 2],
  ])('%j ends with %i', async (args, code) => {
    const ended = await run(args)
    expect(ended.code).toBe(code)
    if (code === 0)
      expect(ended.stdout).toMatch(args[0] === '--version' ? /^\d+\.\d+\.\d+\n$/ : /\brotate-key\b/)
    else expect(ended.stderr).toMatch(/Try portreeve( rotate-key)? --help\.\n$/)
  })
  it.each([
    [['env', 'import', 'none.env'], /^portreeve: none\.env cannot be read: it is missing\.\n$/],
    [['env', 'import', '/'], /^portreeve: \/ cannot be read: it is a folder\.\n$/],
    [['create', 'x', '--dockerfile', 'none'], /^portreeve: none cannot be read: it is missing\.\n$/],
    [['import', 'compose', 'none.yaml'], /^portreeve: none\.yaml cannot be read: it is missing\.\n$/],
    [['logs', 'x', '--app', 'x', '--since', 'noon'], /--since.*'noon' is invalid.*such as 2026-11-22T08/],
    [['create', 'x', '--image', 'y', '--port', 'http'], /--port.*'http' is invalid.*a whole number/],
    [['exec', '--timeout', '1m', '--', 'true'], /--timeout.*'1m' is invalid/],
    [['import'], /^portreeve: It takes one of compose, containers, .*\. Try portreeve import --help\.\n$/],
    [['host'], /^portreeve: It takes one of serve, .*doctor.*\. Try portreeve host --help\.\n$/],
  ])('%j is a wrong call, and says in a line why', async (args, said) => {
    const { code, stderr } = await run(args, { PORTREEVE_URL: 'http://127.0.0.1:1' })
    expect([code, stderr.trim().split('\n').length]).toEqual([2, 1])
    expect(stderr).toMatch(said)
  })
  it('tells programs of an error in their form, with the code of what it is', async () => {
    const told = async (args: string[], env: Record<string, string>) => {
      const { code, stderr } = await run(args, { PORTREEVE_CREDENTIALS: join(data, 'none'), ...env })
      const { error } = JSON.parse(stderr)
      expect(error.message).toMatch(/^[A-Zh].+/)
      return [code, error.code]
    }
    expect(await told(['apps', '--json'], {})).toEqual([4, 'DENIED'])
    const away = { PORTREEVE_URL: 'http://127.0.0.1:1' }
    expect(await told(['apps', '--json'], away)).toEqual([6, 'UNREACHABLE'])
    expect((await run(['exec', '--', 'list', '--json'], away)).stderr).toMatch(/^portreeve: /)
  })
  it.each(['PORTREEVE_TOKEN', 'PORTREEVE_API_KEY'])(
    'says that %s is none, in place of that the server does not answer',
    async (name) => {
      for (const wrong of ['a\nb', '„abc“', '"abc"']) {
        const { code, stderr } = await run(['apps'], { PORTREEVE_URL: 'http://127.0.0.1:1', [name]: wrong })
        expect([code, stderr], wrong).toEqual([
          2,
          expect.stringMatching(/^portreeve: The (token|API key) has a character that none of ours has/),
        ])
      }
    },
  )
  it('takes no error of another service for words of ours', async () => {
    const server = createServer((_request, response) => {
      response
        .writeHead(500, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: { code: 7, message: { text: 'no' }, details: 'none' } }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const { code, stderr } = await run(['apps'], {
      PORTREEVE_URL: `http://127.0.0.1:${port}`,
      PORTREEVE_TOKEN: 'a.b.c',
    })
    server.close()
    expect([code, stderr]).toEqual([1, 'portreeve: The server answered 500.\n'])
  })
  it('opens nothing but addresses of the web, whatever a server says that an app has', async () => {
    const url = 'file:///etc/passwd'
    const server = createServer((_request, response) => {
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ data: { name: 'shop', url } }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const { code, stderr } = await run(['open', 'app_1'], { PORTREEVE_URL: `http://127.0.0.1:${port}` })
    server.close()
    expect([code, stderr]).toEqual([
      5,
      'portreeve: The server says that shop is at file:///etc/passwd, which is no address of the web.\n',
    ])
  })
  it('ends in silence when nobody reads on, as with head', async () => {
    const asked = start(['--help'])
    asked.child.stdout!.destroy()
    expect(await asked.ended).toMatchObject({ code: 0, stderr: '' })
  })
  it('says that what it prints cannot be written, as on a full disk', async () => {
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [program, '--help'], {
      cwd: built,
      stdio: ['ignore', full, 'pipe'],
      env: { PATH: process.env.PATH },
    })
    closeSync(full)
    const code = new Promise((resolve) => child.on('close', resolve))
    expect(await text(child.stderr!)).toBe(
      'portreeve: What this prints cannot be written: its file system is full.\n',
    )
    expect(await code).toBe(1)
  })
  it('serve says what is missing where no server was built', async () => {
    expect(await run(['serve'])).toMatchObject({
      code: 1,
      stderr: 'portreeve: The server is not built yet. Run: npm run build\n',
    })
  })
})

describe('portreeve rotate-key', () => {
  it('seals every secret anew while Portreeve is stopped, and the old key opens nothing', async () => {
    const { old, count } = fill(30)
    const ended = await run(['rotate-key'])
    expect(ended).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining(
        `Sealed ${count} secrets. Every stored secret is sealed with the new key, and the old key is gone.`,
      ),
    })
    const all = values()
    expect(new Set(all.map(({ name }) => name)).size).toBeGreaterThan(8)
    expect(openedWith(current(), all).filter((text) => text === 'unreadable')).toEqual([])
    expect(new Set(openedWith(createSecrets(old), all))).toEqual(new Set(['unreadable']))
    expect(existsSync(`${key_file()}.next`)).toBe(false)
  })
  it('goes on after kill -9 in the middle, with every secret readable at any time', async () => {
    const { old, count } = fill(800)
    let kills = 0
    for (let left = count; left > 0 && kills < 3; ) {
      const running = start(['rotate-key'])
      await new Promise<void>((resolve) => {
        running.child.stdout!.on('data', () => {
          if (/Sealed \d+ of/.test(running.output())) resolve()
        })
        running.child.on('close', () => resolve())
      })
      running.child.kill('SIGKILL')
      const { code } = await running.ended
      if (code !== null) break
      kills += 1
      const both = createSecrets(loadNextKey(key_file())!, old)
      const texts = openedWith(both, values())
      expect(texts.filter((text) => text === 'unreadable')).toEqual([])
      left = openedWith(createSecrets(old), values()).filter((text) => text !== 'unreadable').length
    }
    expect(kills).toBeGreaterThan(0)
    const last = await run(['rotate-key'])
    expect(last.stdout).toContain('A rotation was begun before; this goes on with it.')
    const all = values()
    expect([last.code, all.length, openedWith(current(), all).includes('unreadable')]).toEqual([
      0,
      count,
      false,
    ])
    expect(new Set(openedWith(createSecrets(old), all))).toEqual(new Set(['unreadable']))
  })
  it('keeps the old key when one secret cannot be read, and says so', async () => {
    const { old } = fill(3)
    const db = openDb(join(data, 'portreeve.db'))
    db.sql(`UPDATE registries SET password = 'v1.deadbeef.AAAA.AAAA' WHERE rowid = 1`).run()
    db.close()
    const ended = await run(['rotate-key'])
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('The old key is kept') })
    expect(loadMasterKey(key_file(), undefined, true).equals(old)).toBe(true)
    expect(ended.stderr).not.toContain('    at ')
  })
  it('only prepares the key while a server runs, says that it must be restarted, and waits for the end when asked to', async () => {
    const { old } = fill(2)
    const unlock = lockDirectory(data)
    const ended = await run(['rotate-key'])
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /A new key is ready\.\nPortreeve is running with the old key\. Restart it/,
      ),
    })
    const next = loadNextKey(key_file())!
    expect(openedWith(createSecrets(old), values())).not.toContain('unreadable')
    const waiting = start(['rotate-key', '--wait'])
    await new Promise<void>((resolve) =>
      waiting.child.stdout!.on('data', () => {
        if (waiting.output().includes('Waiting')) resolve()
      }),
    )
    unlock()
    expect((await run(['rotate-key'])).code).toBe(0)
    expect(await waiting.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('the old key is gone'),
    })
    expect(loadMasterKey(key_file(), undefined, true).equals(next)).toBe(true)
  })
  it('refuses a key that is given by the environment, and a folder that holds none', async () => {
    fill(1)
    const before = readFileSync(key_file(), 'utf8')
    expect(await run(['rotate-key'], { PORTREEVE_SECRET_KEY: 'x'.repeat(40) })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('given as PORTREEVE_SECRET_KEY'),
    })
    expect([readFileSync(key_file(), 'utf8'), existsSync(`${key_file()}.next`)]).toEqual([before, false])
    expect(await run(['rotate-key'], { PORTREEVE_DATA_DIR: join(data, 'nowhere') })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no key to rotate'),
    })
    writeFileSync(key_file(), 'short')
    expect(await run(['rotate-key'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('does not hold a key'),
    })
  })
})
