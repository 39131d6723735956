import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, docker, freePorts, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { startSshMachine } from '#test/support/ssh-machine'
import pkg from '../../package.json' with { type: 'json' }
import { writeBinary } from '../../scripts/binary-file.ts'

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
  it('is the same, byte for byte, when the same build is packed again', async () => {
    const again = join(home, 'again')
    await writeBinary({ output: join(ROOT, '.output'), target: again, version: pkg.version })
    expect(readFileSync(again).equals(readFileSync(program))).toBe(true)
    rmSync(again)
  }, 300_000)
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
  it('tells of errors in a line, also what cannot be unpacked, and ends as the client of Node does', () => {
    expect(run(['nope'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^portreeve: unknown command.*/),
    })
    expect(run(['apps', 'show', 'gone', '--json'])).toMatchObject({ code: 3, stdout: '' })
    const closed = join(home, 'closed')
    writeFileSync(closed, '')
    const { status, stderr } = spawnSync(program, ['host', 'status'], {
      env: { ...env, PORTREEVE_CACHE_DIR: join(closed, 'cache') },
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([
      1,
      `portreeve: ${join(closed, 'cache')} cannot be used: a part of its path is a file.\n`,
    ])
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

describe('portreeve setup', () => {
  const data = join(home, 'installation')
  const places = ['--data-dir', data, '--bin-dir', join(home, 'bin')]
  let settings: Record<string, string>
  const call = (args: string[], more: Record<string, string> = {}, input = '') => {
    const { status, stdout, stderr } = spawnSync(args[0]!, args.slice(1), {
      env: { ...env, ...more },
      input,
      encoding: 'utf8',
    })
    return { code: status, output: stdout + stderr }
  }
  beforeAll(async () => {
    const [port = 0, http = 0, https = 0] = await freePorts(3)
    settings = {
      HOST: '127.0.0.1',
      PORT: String(port),
      PORTREEVE_HTTP_PORT: String(http),
      PORTREEVE_HTTPS_PORT: String(https),
      PORTREEVE_BASE_DOMAIN: 'apps.test',
      ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
    }
  })
  afterAll(() => {
    call([program, 'uninstall', ...places])
    for (const id of docker('ps', '-aq', '--filter', 'label=portreeve.edge').split('\n').filter(Boolean))
      if (docker('inspect', id, '--format', '{{json .Mounts}}').includes(data)) docker('rm', '-f', id)
  })

  it('makes a server of one file that runs by itself and prints where it is and how to log in', async () => {
    const { code, output } = call([program, 'setup', ...places], settings)
    expect([code, output]).toEqual([0, expect.stringContaining('Started Portreeve.')])
    const url = `http://127.0.0.1:${settings.PORT}`
    expect(output).toContain(`Portreeve is ready:  ${url}`)
    const password = /Password: +(\S+)/.exec(output)?.[1] ?? ''
    const body = JSON.stringify({ email: 'admin@localhost', password })
    const headers = { 'content-type': 'application/json' }
    expect((await fetch(`${url}/api/auth/login`, { method: 'POST', headers, body })).status).toBe(200)
    expect(statSync(join(data, 'portreeve.env')).mode & 0o777).toBe(0o600)
    // Every user of the machine may call it, though the data are closed.
    const installed = realpathSync(join(home, 'bin/portreeve'))
    const modes = [installed, dirname(installed), data].map((path) => statSync(path).mode & 0o777)
    expect(modes).toEqual([0o755, 0o755, 0o700])
  })
  it('takes settings back that the server does not start with, says why, and the server from before serves', () => {
    const wrong = { PORTREEVE_SECRET_KEY: 'another key than that of the database' }
    const { code, output } = call([join(home, 'bin/portreeve'), 'setup', ...places], wrong)
    expect([code, output]).toEqual([
      1,
      expect.stringContaining('so they were taken back: it runs as before.'),
    ])
    expect(output).toContain('PORTREEVE_SECRET_KEY is not the key')
    expect(call([join(home, 'bin/portreeve'), 'host', 'status']).code).toBe(0)
  })
  it('changes nothing when it is called again, not even without the settings that it was given', () => {
    expect(call([join(home, 'bin/portreeve'), 'setup', ...places]).output).toContain('nothing was changed')
  })
  it('knows its own server without being told where that is', () => {
    const { code, output } = call([join(home, 'bin/portreeve'), 'host', 'status'])
    expect([code, output]).toEqual([0, expect.stringContaining(`127.0.0.1:${settings.PORT}`)])
  })
  it('is taken away by uninstall, which leaves the data and says where they are', async () => {
    const { code, output } = call([join(home, 'bin/portreeve'), 'uninstall', ...places])
    expect([code, output]).toEqual([0, expect.stringContaining(`still in ${data}`)])
    for (const what of ['ps', 'network ls', 'image ls', 'volume ls'])
      expect(output).toContain(`docker ${what} `)
    await expect(fetch(`http://127.0.0.1:${settings.PORT}/healthz`)).rejects.toThrow()
    expect([existsSync(join(home, 'bin/portreeve')), existsSync(join(data, 'portreeve.db'))]).toEqual([
      false,
      true,
    ])
  })
  it('sets another machine up over SSH, once its key is the one that was named', async () => {
    // The edge of the installation before serves on at its ports.
    const [port, http, https] = await freePorts(3)
    const { DOCKER_HOST, ...kept } = settings
    const others = {
      ...kept,
      PORT: String(port),
      PORTREEVE_HTTP_PORT: String(http),
      PORTREEVE_HTTPS_PORT: String(https),
    }
    const machine = await startSshMachine(DOCKER_HOST ? { DOCKER_HOST } : {})
    const there = ['--data-dir', `${data}-2`, '--bin-dir', join(home, 'bin-2')]
    const words = ['setup', machine.target, '--identity', machine.identity, ...there]
    const remote = (key: string) =>
      new Promise<{ code: number | null; output: string }>((resolve) => {
        const child = spawn(program, [...words, '--host-key', key], { env: { ...env, ...others } })
        let output = ''
        for (const stream of [child.stdout, child.stderr])
          stream.on('data', (chunk: Buffer) => {
            output += chunk.toString()
          })
        child.on('close', (code) => resolve({ code, output }))
      })
    try {
      const wrong = await remote(`SHA256:${'A'.repeat(43)}`)
      expect(wrong).toMatchObject({ code: 1, output: expect.stringContaining('Nothing was sent to it') })
      const { code, output } = await remote(machine.host_key)
      expect([code, output]).toEqual([0, expect.stringMatching(/Portreeve is ready: [^]*Password: +\S+/)])
      expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
      expect(call([join(home, 'bin-2/portreeve'), 'uninstall', ...there]).code).toBe(0)
    } finally {
      call([program, 'uninstall', ...there])
      await machine.close()
    }
  })
})
