import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'

const program = join(ROOT, 'dist/portreeve')
const home = mkdtempSync(join(tmpdir(), 'ptr-binary-'))
const folder = join(home, 'shop')
const cache = join(home, 'cache')
const env = { PATH: '/usr/bin:/bin', HOME: home, PORTREEVE_CACHE_DIR: cache }
let portreeve: Portreeve

/** The binary in an environment that has no Node and no checkout. */
const run = (args: string[], input = '') => {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, env, input, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

beforeAll(async () => {
  mkdirSync(folder)
  const made = spawnSync(process.execPath, [join(ROOT, 'scripts/binary.ts')], { cwd: ROOT, encoding: 'utf8' })
  expect(made.status, made.stderr).toBe(0)
  portreeve = await startPortreeve({ program, env: { PORTREEVE_CACHE_DIR: cache } })
})
afterAll(async () => {
  await portreeve?.dispose()
  rmSync(home, { recursive: true, force: true })
})

describe('the binary', () => {
  it('comes with its checksum and the list of what is inside', () => {
    const digest = createHash('sha256').update(readFileSync(program)).digest('hex')
    expect(readFileSync(`${program}.sha256`, 'utf8')).toBe(`${digest}  portreeve\n`)
    const list = JSON.parse(readFileSync(`${program}.cdx.json`, 'utf8'))
    const names = list.components.map(({ name, group }: any) => (group ? `${group}/${name}` : name))
    expect([list.bomFormat, list.metadata.component.hashes[0].content]).toEqual(['CycloneDX', digest])
    expect(names).toEqual(expect.arrayContaining(['better-sqlite3', 'h3', 'vue', 'commander', 'node']))
    expect(names).not.toContain('vitest')
  })
  it('serves the API, the dashboard and its files, with the migrations and the description in it', async () => {
    expect((await portreeve.call('GET', '/api/system/info')).body.data.ingress.running).toBe(true)
    const page = await fetch(`${portreeve.url}/login`)
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(await page.text())?.[1]
    expect((await fetch(portreeve.url + script)).headers.get('content-type')).toContain('javascript')
    expect((await portreeve.call('GET', '/api/openapi.json')).body.openapi).toBe('3.1.0')
  })
  it('is the client as well: a folder is sent, looked at, built and served', async () => {
    for (const [name, text] of Object.entries(nodeApp('from the binary')))
      writeFileSync(join(folder, name), text)
    expect(
      run(['login', portreeve.url, '--email', ADMIN.email, '--password-stdin'], ADMIN.password).code,
    ).toBe(0)
    const { code, stdout, stderr } = run(['deploy'])
    expect([code, stderr], stdout).toEqual([0, ''])
    expect((await portreeve.visit('shop.apps.test')).body).toBe('from the binary')
  })
  it('finds out when what it unpacked was changed, and unpacks it anew', () => {
    const [name = ''] = readdirSync(cache)
    const file = join(cache, name, 'server/portreeve.mjs')
    const before = readFileSync(file, 'utf8')
    appendFileSync(file, '\nprocess.exit(42)\n')
    expect(run(['host', 'doctor', '--help']).code).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(before)
  })
})
