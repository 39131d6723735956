import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { EngineError } from '#server/platform/engine/engine'
import type { Outgoing } from '#server/realtime/ports'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'
const TOKEN = 'ghp_Zq81mnTTxk20Lw'
const PASSWORD = 'registry-pa55word'
const BASIC = Buffer.from(`x-access-token:${TOKEN}`).toString('base64')

let api: TestApi
let heard: Outgoing[]
beforeEach(async () => {
  api = await createTestApi()
  heard = []
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
    'server.js': '//',
  })
  await api.services.git_credentials.add(api.actor('owner'), api.services.http.default_project(), {
    name: 'code',
    host: 'git.example.com',
    token: TOKEN,
  })
  const { checkout } = api.fakes.git
  api.fakes.git.checkout = (source, directory, options, signal) => {
    options.onLog(`> Authorization: Basic ${BASIC}`)
    options.onLog(`token ${TOKEN} was sent`)
    return checkout(source, directory, options, signal)
  }
})
afterEach(() => api.close())

/** Adds a registry's login as an installation keeps it. */
function addRegistry(): void {
  const { db, secrets, clock } = api.kernel
  db.sql(
    'INSERT INTO registries (id, name, host, username, password, verified_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  ).run(
    'reg_1',
    'Ours',
    'registry.example.com',
    'robot',
    secrets.seal(PASSWORD, 'registries/password/reg_1'),
    clock.iso(),
    clock.iso(),
    clock.iso(),
  )
}

/**
 * Creates the app while somebody follows its deployment, and waits for the end; answers all that is kept or
 * told of it.
 */
async function deployed(behaviour: Parameters<TestApi['fakes']['engine']['behave']>[1]): Promise<string> {
  api.fakes.engine.behave(() => true, behaviour)
  const release = api.fakes.git.hold(URL)
  const { id } = (
    await api.as('developer').post('/api/apps', {
      name: 'shop',
      git_url: URL,
      soak_seconds: 0,
      build: { release_command: 'migrate' },
    })
  ).body.data
  const deployment_id = (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body.data[0].id
  const peer = {
    send: (text: string) => void heard.push(JSON.parse(text) as Outgoing),
    bufferedBytes: () => 0,
    ping: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
    close: () => undefined,
    terminate: () => undefined,
  }
  api.services.realtime.open(peer, api.actor('viewer'))
  api.services.realtime.message(
    peer,
    JSON.stringify({ type: 'subscribe', channel: `deployments/${deployment_id}`, after: 0 }),
  )
  release()
  await api.services.jobs.idle()
  api.services.deployments.logs.flush()
  api.services.realtime.close(peer)
  const directory = join(api.kernel.config.data_directory, 'logs')
  const files = readdirSync(directory)
    .filter((name) => name.endsWith('.ndjson'))
    .map((name) => readFileSync(join(directory, name), 'utf8'))
  const answers = await Promise.all(
    [
      `/api/deployments/${deployment_id}`,
      `/api/deployments/${deployment_id}/logs`,
      `/api/apps/${id}/deployments`,
      `/api/apps/${id}/logs?source=build`,
    ].map(async (path) => JSON.stringify((await api.as('viewer').get(path)).body)),
  )
  const rows = JSON.stringify([
    api.kernel.db.sql('SELECT failure FROM deployments').all(),
    api.kernel.db.sql('SELECT failure, state FROM jobs').all(),
    api.events(),
  ])
  return [...files, ...answers, rows, JSON.stringify(heard)].join('\n')
}

const expectClean = (everything: string) => {
  for (const secret of [
    TOKEN,
    PASSWORD,
    BASIC,
    Buffer.from(TOKEN).toString('base64').slice(0, -2),
    BASIC.slice(24),
  ])
    expect(everything).not.toContain(secret)
}

it('a token or password that clone, build or release command print is nowhere: not in the file, REST, WebSocket or rows', async () => {
  addRegistry()
  const everything = await deployed({
    build_log: [`ENV TOKEN=${TOKEN}`, `login ${PASSWORD}`],
    run: () => ({ lines: [`migrating with ${TOKEN}`] }),
  })
  expectClean(everything)
  for (const line of [
    'token [redacted] was sent',
    'ENV TOKEN=[redacted]',
    'login [redacted]',
    'migrating with [redacted]',
  ]) {
    expect(everything.split(line).length, line).toBeGreaterThan(2)
    expect(JSON.stringify(heard)).toContain(line)
  }
})

it('whoever pushes puts none of them into the message or the author of a commit', async () => {
  api.fakes.git.commit(URL, 'main', {}, `Use ${TOKEN} again`, `Ada ${TOKEN}`)
  const everything = await deployed({})
  expectClean(everything)
  for (const text of ['Use [redacted] again', 'Ada [redacted]'])
    expect(everything.split(text).length, text).toBeGreaterThan(2)
})

it('a failure tells the last lines of the program without them', async () => {
  const everything = await deployed({ start: 'exits', start_log: [`cannot log in with ${TOKEN}`] })
  expectClean(everything)
  expect(JSON.stringify(heard)).toContain('cannot log in with [redacted]')
})

it("the server's own log tells a fault, tried again or not, without them", async () => {
  const { checkout } = api.fakes.git
  let faults = 0
  api.fakes.git.checkout = (...args) => {
    if ((faults += 1) > 1) return checkout(...args)
    throw Object.assign(
      new Error(`fatal: https://x-access-token:${TOKEN}@git.example.com broke`, {
        cause: new Error(`sent Basic ${BASIC}`),
      }),
      { name: 'OddError' },
    )
  }
  await deployed({})
  const lines = JSON.stringify(api.kernel.lines)
  expectClean(lines)
  expect(lines).toContain('A step is tried again')
  expect(lines).toContain('https://x-access-token:[redacted]@git.example.com broke')
})

it('what an engine says about an app that is started again leaves none in a job, an event or the log', async () => {
  await deployed({})
  const { id } = api.kernel.db.sql('SELECT id FROM apps').get() as { id: string }
  expect((await api.as('developer').post(`/api/apps/${id}/stop`)).status).toBe(200)
  await api.services.jobs.idle()
  api.fakes.engine.ensureRelease = async () => {
    throw new EngineError('image_denied', `The command «login ${TOKEN}» failed.`)
  }
  expect((await api.as('developer').post(`/api/apps/${id}/start`)).status).toBe(200)
  await api.services.jobs.idle()
  const rows = JSON.stringify([
    api.kernel.db.sql('SELECT failure, state FROM jobs').all(),
    api.events(),
    api.kernel.lines,
  ])
  expectClean(rows)
  expect(rows).toContain('The command «login [redacted]» failed.')
})

it('a log that goes on in another process still hides them, and so does one of a token that was added meanwhile', async () => {
  await deployed({})
  const { id } = api.kernel.db.sql('SELECT id FROM deployments').get() as { id: string }
  const { logs } = api.services.deployments
  logs.close(id)
  logs.append(id, 'start', 'stdout', `again ${TOKEN}`)
  await api.services.git_credentials.add(api.actor('owner'), api.services.http.default_project(), {
    name: 'new',
    host: 'other.example.com',
    token: PASSWORD,
  })
  await logs.protect(id)
  logs.append(id, 'start', 'stdout', `more ${PASSWORD}`)
  expect(logs.tail(id, 2).map(({ text }) => text)).toEqual(['again [redacted]', 'more [redacted]'])
})

it('a secret across the end of a line that is too long leaves nothing of itself', async () => {
  const everything = await deployed({ build_log: [`${'x'.repeat(8180)}${TOKEN}`] })
  expect(everything).not.toContain(TOKEN.slice(0, 4))
})

it('a program of the app cannot guess at registry passwords, tokens and keys: its own log does not look for them', async () => {
  addRegistry()
  await deployed({})
  const { id } = api.kernel.db.sql('SELECT id FROM apps').get() as { id: string }
  const { runtime } = api.services.deployments
  expect(runtime.redact(id, `${PASSWORD} ${TOKEN}`)).toBe(`${PASSWORD} ${TOKEN}`)
})
