import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { docker, freePorts } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'

const entry = process.env.PORTREEVE_ENTRY ?? join(ROOT, '.output/server/index.mjs')
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ptr-start-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Runs the server until it ends. One that starts in spite of its fault would run for ever, so it is killed and its exit code is null. */
async function ending(env: Record<string, string>): Promise<{ code: number | null; output: string }> {
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  const child = spawn(process.execPath, [entry], {
    cwd: directory, stdio: ['ignore', 'pipe', 'pipe'], timeout: 30_000, killSignal: 'SIGKILL',
    env: { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: String(port), PORTREEVE_HTTP_PORT: String(http), PORTREEVE_HTTPS_PORT: String(https), PORTREEVE_DATA_DIR: join(directory, 'data'), ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { output += chunk.toString() })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}
const edges = () => docker('ps', '-aq', '--filter', 'label=portreeve.edge', '--filter', `volume=${join(directory, 'data', 'ingress')}`)

it('a port that is taken ends the start with one sentence, before anything is made', async () => {
  const other = createServer().listen(0, '0.0.0.0')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const { code, output } = await ending({ HOST: '0.0.0.0', PORT: String(port) })
  other.close()
  expect(output).toBe(`Portreeve cannot start: port ${port} on 0.0.0.0 is already in use. End what listens there, or set PORT to another one.\n`)
  expect([code, readdirSync(directory), edges()]).toEqual([1, [], ''])
})
it('an address that is not of this machine ends the start with one sentence, before anything is made', async () => {
  const { code, output } = await ending({ HOST: '300.1.1.1' })
  expect(output).toBe('Portreeve cannot start: 300.1.1.1 is no address of this machine. Set HOST to one that it has, or leave it out.\n')
  expect([code, readdirSync(directory)]).toEqual([1, []])
})
it('a data directory that cannot be made or is a file ends the start with one sentence', async () => {
  const file = join(directory, 'file')
  writeFileSync(file, '')
  for (const path of ['/proc/x', file]) {
    const { code, output } = await ending({ PORTREEVE_DATA_DIR: path })
    expect(output).toContain(`Portreeve cannot start: the data directory ${path} cannot be used: `)
    expect([code, output.includes(' at ')]).toEqual([1, false])
  }
})
it('a misspelt setting is told with the one that was probably meant', async () => {
  const { output } = await ending({ PORTREEVE_HTTPPORT: '8080', PORTREEVE_DATA_DIR: '/proc/x' })
  expect(output).toMatch(/WARN +There is no setting PORTREEVE_HTTPPORT; it is ignored\. Is PORTREEVE_HTTP_PORT meant\?/)
})
