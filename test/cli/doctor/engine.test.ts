import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ENGINE } from '../../../cli/doctor/engine.ts'
import type { Patient } from '../../../cli/doctor/finding.ts'

const look = ENGINE.find(({ name }) => name === 'engine')!.look
let folder: string
let server: Server
let patient: Patient
/** What the engine knows of the image of the edge; nothing where it has none. */
let image: { Id: string; Config: { Env: string[] } } | undefined
let facts: { SecurityOptions?: string[]; Components?: { Name: string; Version: string }[] }
beforeEach(async () => {
  facts = {}
  folder = mkdtempSync(join(tmpdir(), 'portreeve-doctor-'))
  server = createServer((request, response) => {
    const is_image = request.url!.includes('/images/')
    response.statusCode = is_image && !image ? 404 : 200
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify(
        is_image
          ? (image ?? { message: 'No such image' })
          : { Version: '29.3.1', ApiVersion: '1.47', ...facts },
      ),
    )
  })
  await new Promise<void>((resolve) => server.listen(join(folder, 'engine'), resolve))
  const config = { docker_host: `unix://${join(folder, 'engine')}`, data_directory: folder }
  patient = { config, is_running: false } as Patient
})
afterEach(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

it('an edge of a release with a known fault is told, with the commands that mend it', async () => {
  image = { Id: 'sha256:1', Config: { Env: ['PATH=/usr/bin', 'HAPROXY_VERSION=3.0.18'] } }
  const { state, says, remedy } = await look(patient)
  expect([state, says]).toEqual(['fault', expect.stringContaining('CVE-2026-33555')])
  expect(remedy).toMatch(/docker pull haproxy:\S+ && docker rm -f portreeve-edge/)
})
it.each([['HAPROXY_VERSION=3.0.19'], ['PATH=/usr/bin']])('one that says %s is well', async (line) => {
  image = { Id: 'sha256:1', Config: { Env: [line] } }
  expect(await look(patient)).toMatchObject({ says: expect.stringContaining('has the image of the edge') })
})
it('one that is not there yet is no fault', async () => {
  image = undefined
  expect(await look(patient)).toMatchObject({ says: expect.stringContaining('does not have the image') })
})
it('nothing is said of an edge that cannot be seen, as while its engine is down', async () => {
  const { config } = patient
  const ports = ENGINE.find(({ name }) => name === 'edge ports')!.look
  const away = { ...config, docker_host: `unix://${join(folder, 'none')}`, http_port: 1, https_port: 2 }
  expect(await ports({ ...patient, config: away, is_running: true })).toMatchObject({
    state: 'note',
    says: expect.stringContaining('cannot be told while the engine does not answer'),
  })
})

it.each([
  ['note', { SecurityOptions: ['name=seccomp,profile=default'], runc: '1.1.5+ds1' }],
  ['ok', { SecurityOptions: ['name=seccomp,profile=default', 'name=userns'], runc: '1.1.5+ds1' }],
  ['ok', { SecurityOptions: ['name=seccomp,profile=default'], runc: '1.3.3' }],
])(
  'known faults of what starts containers are a %s, with the way out: %o',
  async (state, { runc, ...more }) => {
    facts = { ...more, Components: [{ Name: 'runc', Version: runc }] }
    const found = await ENGINE.find(({ name }) => name === 'container users')!.look(patient)
    expect(found.state).toBe(state)
    if (state === 'note')
      expect(found).toMatchObject({
        says: expect.stringContaining(runc),
        remedy: expect.stringContaining('users of their own'),
      })
  },
)
