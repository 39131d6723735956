import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { docker, eventually, freePorts } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { writeBinary } from '../../scripts/binary-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'ptr-up-'))
const program = join(folder, 'bin/portreeve')
const data = join(folder, 'data')
let url = ''
let env: Record<string, string> = {}
let supervisor: ChildProcess

/** A release folder made of this build, with something of it changed. */
async function release(version: string, change: (output: string) => void): Promise<string> {
  const output = join(folder, `output-${version}`)
  cpSync(join(ROOT, '.output'), output, { recursive: true })
  change(output)
  const place = join(folder, version)
  mkdirSync(place)
  const target = join(place, 'portreeve')
  await writeBinary({ output, target, version, work: join(folder, 'work'), level: 1 })
  const digest = createHash('sha256').update(readFileSync(target)).digest('hex')
  writeFileSync(`${target}.sha256`, `${digest}  portreeve\n`)
  rmSync(output, { recursive: true })
  return place
}
const run = (...args: string[]) =>
  new Promise<{ code: number | null; output: string }>((resolve) => {
    const child = spawn(program, args, { env })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    child.on('close', (code) => resolve({ code, output }))
  })
const build = async () => JSON.parse((await run('--build')).output).version
const ready = () =>
  eventually('readiness', async () => ((await fetch(`${url}/readyz`)).status === 200 ? true : undefined))

beforeAll(async () => {
  mkdirSync(join(folder, 'bin'))
  const first = await release('1.0.0', () => undefined)
  copyFileSync(join(first, 'portreeve'), program)
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  url = `http://127.0.0.1:${port}`
  env = {
    PATH: process.env.PATH!,
    HOME: folder,
    HOST: '127.0.0.1',
    PORT: String(port),
    PORTREEVE_CACHE_DIR: join(folder, 'cache'),
    PORTREEVE_DATA_DIR: data,
    PORTREEVE_HTTP_PORT: String(http),
    PORTREEVE_HTTPS_PORT: String(https),
    PORTREEVE_BASE_DOMAIN: 'apps.test',
    PORTREEVE_ADMIN_PASSWORD: 'correct horse battery staple',
    ...(process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {}),
  }
  // What install.sh uses where there is no systemd: it starts again whatever stands in the place.
  const argv = [
    join(ROOT, 'scripts/shell/supervise.sh'),
    join(folder, 'supervisor'),
    'portreeve',
    program,
    'serve',
  ]
  supervisor = spawn('bash', argv, { env, stdio: 'ignore' })
  await ready()
}, 900_000)
afterAll(async () => {
  const ended = new Promise((resolve) => supervisor.once('exit', resolve))
  supervisor.kill('SIGTERM')
  await ended
  for (const id of docker('ps', '-aq', '--filter', 'label=portreeve.edge').split('\n').filter(Boolean))
    if (docker('inspect', id, '--format', '{{json .Mounts}}').includes(data)) docker('rm', '-f', id)
  rmSync(folder, { recursive: true, force: true })
})

describe('portreeve upgrade', () => {
  it('refuses a damaged program and changes nothing', async () => {
    const place = join(folder, 'damaged')
    mkdirSync(place)
    writeFileSync(join(place, 'portreeve'), 'damaged')
    writeFileSync(join(place, 'portreeve.sha256'), `${'0'.repeat(64)}  portreeve\n`)
    expect(await run('upgrade', place)).toMatchObject({
      code: 1,
      output: expect.stringContaining('Nothing was changed'),
    })
    expect([await build(), existsSync(`${program}.old`)]).toEqual(['1.0.0', false])
  })
  it('goes back by itself from a program that does not start, and tells why', async () => {
    const place = await release('3.0.0', (output) => {
      writeFileSync(join(output, 'server/index.mjs'), 'setTimeout(() => process.exit(3), 100)')
    })
    const { code, output } = await run('upgrade', place)
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(/3\.0\.0 failed: It ended with the code 3;.* 1\.0\.0 serves again/),
    ])
    await ready()
    expect(await build()).toBe('1.0.0')
  }, 900_000)
  it('brings another program into service, and says how long the API was away', async () => {
    const place = await release('2.0.0', (output) =>
      writeFileSync(join(output, 'server/note.txt'), 'another build'),
    )
    const { code, output } = await run('upgrade', place)
    expect([code, output]).toEqual([
      0,
      expect.stringMatching(/Portreeve 2\.0\.0 serves\. The API was away for [\d.]+ s/),
    ])
    await ready()
    expect([await build(), readFileSync(`${program}.old`).length > 0]).toEqual(['2.0.0', true])
    expect(await run('upgrade', place)).toMatchObject({
      code: 0,
      output: expect.stringContaining('nothing was changed'),
    })
  }, 900_000)
})
