import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { pack } from 'tar-stream'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
  const app = { name: 'shop', source: 'upload', soak_seconds: 0 }
  app_id = (await api.as('developer').post('/api/apps', app)).body.data.id
})
afterEach(() => api.close())

/** A gzipped tar of a small app. */
async function archive(): Promise<Buffer> {
  const packed = pack()
  packed.entry({ name: 'package.json' }, JSON.stringify({ scripts: { start: 'node server.js' } }))
  packed.entry({ name: 'server.js' }, "require('http').createServer().listen(process.env.PORT)")
  packed.finalize()
  return gzipSync(await buffer(packed))
}
const send = (raw: Buffer, as: 'developer' | 'deploy_key' = 'developer') =>
  api.request('POST', `/api/apps/${app_id}/upload`, {
    as,
    raw,
    headers: { 'content-type': 'application/gzip' },
  })
const latest = async () => {
  await api.services.jobs.idle()
  return (await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.data[0]
}
const deploy = () => api.as('developer').post(`/api/apps/${app_id}/deploy`)

it('a hook deploys what was uploaded last, as anybody who asks by hand does', async () => {
  const { url } = (await api.as('developer').post('/api/webhooks', { kind: 'deployment', app_id })).body.data
  const call = () => api.request('POST', new URL(url).pathname)
  expect((await call()).status).toBe(409)
  await send(await archive())
  expect(await latest()).toMatchObject({ number: 1, status: 'live' })
  expect((await call()).status).toBeLessThan(300)
  expect(await latest()).toMatchObject({ number: 2, trigger: 'hook', status: 'live' })
})

it('an archive that cannot be unpacked does not take the place of the one that could', async () => {
  await send(await archive())
  expect(await latest()).toMatchObject({ number: 1, status: 'live' })
  for (const number of [2, 3]) {
    expect((await send(randomBytes(1000))).status).toBe(201)
    expect(await latest()).toMatchObject({ number, status: 'failed', error: { code: 'bad_archive' } })
  }
  await deploy()
  expect(await latest()).toMatchObject({ number: 4, status: 'live', error: null })
})

it('an archive that is gone, as after a restore on another server, is asked for again', async () => {
  await send(await archive())
  await latest()
  rmSync(join(api.kernel.config.data_directory, 'uploads'), { recursive: true })
  await deploy()
  const { status, error } = await latest()
  expect([status, error.code, error.hint]).toEqual(['failed', 'bad_archive', expect.stringMatching(/again/)])
})

it('however often an app is restarted, its archive is there for the next deployment', async () => {
  await send(await archive())
  await latest()
  for (let n = 0; n < 100; n += 1) await api.as('developer').post(`/api/apps/${app_id}/restart`)
  expect((await deploy()).status).toBeLessThan(300)
  expect(await latest()).toMatchObject({ number: 102, status: 'live', error: null })
})

it('what a killed process was still receiving is gone after the next start, and what is needed stays', async () => {
  await send(await archive())
  const { id } = await latest()
  const uploads = join(api.kernel.config.data_directory, 'uploads')
  const [needed] = readdirSync(uploads)
  for (const name of ['dep_broken.tar.gz.partial', 'dep_unknown.tar.gz'])
    writeFileSync(join(uploads, name), 'x')
  await api.services.start()
  expect(readdirSync(uploads)).toEqual([needed])
  await deploy()
  expect(await latest()).toMatchObject({ status: 'live', id: expect.not.stringMatching(id) })
})

it('what was uploaded last is built without layers of earlier builds when a deployment asks for that', async () => {
  const no_cache = () =>
    api.fakes.engine.calls
      .filter(({ method }) => method === 'buildImage')
      .map(({ args }) => (args[0] as { no_cache: boolean }).no_cache)
  await send(await archive())
  await latest()
  await api.as('developer').post(`/api/apps/${app_id}/deploy`, { no_cache: true })
  expect(await latest()).toMatchObject({ number: 2, status: 'live' })
  expect(no_cache()).toEqual([false, true])
})

it.each([
  ['branch', { branch: 'main' }],
  ['commit', { commit: '0123456' }],
])('a %s is refused for an app that is uploaded, which has none', async (field, body) => {
  await send(await archive())
  await latest()
  const { status, body: answer } = await api.as('developer').post(`/api/apps/${app_id}/deploy`, body)
  expect([status, answer.error?.details?.[0].path]).toEqual([422, field])
})

it('what a program sends with an API key is told from what a person sends', async () => {
  await send(await archive())
  expect(await latest()).toMatchObject({ trigger: 'manual' })
  await send(await archive(), 'deploy_key')
  expect(await latest()).toMatchObject({ number: 2, trigger: 'api', status: 'live' })
})
