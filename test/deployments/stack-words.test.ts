import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

/** Values of secrets, each in a word of a service where people put passwords. */
const WORDS = {
  COMMAND_PASSWORD: 'canary-in-a-command',
  ENTRYPOINT_TOKEN: 'canary-in-an-entrypoint',
  FOLDER_SECRET: 'canary-in-a-folder',
  CHECK_PASSWORD: 'canary-in-a-health-check',
}
const COMPOSE = JSON.stringify({
  services: {
    store: {
      image: 'valkey/valkey:8',
      entrypoint: ['/bin/enter', '${ENTRYPOINT_TOKEN}'],
      command: ['valkey-server', '--requirepass', '${COMMAND_PASSWORD}'],
      working_dir: '/srv/${FOLDER_SECRET}',
      healthcheck: { test: ['CMD', 'valkey-cli', '-a', '${CHECK_PASSWORD}', 'ping'], interval: '1s' },
    },
  },
})
let api: TestApi
let app_id: string
const call = () => api.as('developer')

beforeEach(async () => {
  api = await createTestApi()
  const { body } = await call().post('/api/apps', { name: 'store', compose: COMPOSE, soak_seconds: 0 })
  app_id = body.data.id
  await api.services.jobs.idle()
  const given = { variables: WORDS, secret: true }
  expect((await call().post(`/api/apps/${app_id}/env/import`, given)).status).toBe(200)
})
afterEach(() => api.close())

async function deploy(path = 'deploy') {
  const { body } = await call().post(`/api/apps/${app_id}/${path}`, {})
  await api.services.jobs.idle()
  return (await call().get(`/api/deployments/${body.data.id}`)).body.data.status
}
const made = () =>
  api.fakes.engine.calls.findLast(({ method }) => method === 'ensureRelease')!.args[0] as Record<
    string,
    unknown
  >
const asked = () => JSON.stringify(api.fakes.engine.calls.filter(({ method }) => method === 'exec'))
const inTheDatabase = () => {
  const bytes = api.kernel.db.raw.serialize().toString('latin1')
  return Object.values(WORDS).filter((value) => bytes.includes(value))
}
const RUNNING = {
  entrypoint: ['/bin/enter', WORDS.ENTRYPOINT_TOKEN],
  command: ['valkey-server', '--requirepass', WORDS.COMMAND_PASSWORD],
  working_dir: `/srv/${WORDS.FOLDER_SECRET}`,
}

test('a secret that a compose file puts into a command is in no row in clear, and the service has it', async () => {
  expect(await deploy()).toBe('live')
  expect(made()).toMatchObject(RUNNING)
  expect(asked()).toContain(WORDS.CHECK_PASSWORD)
  expect(inTheDatabase()).toEqual([])
})

test('a restart takes the words of the release over, sealed as they are', async () => {
  await deploy()
  expect(await deploy('restart')).toBe('live')
  expect(made()).toMatchObject(RUNNING)
  expect(inTheDatabase()).toEqual([])
})

test('a release from before words were sealed is started with those in its row', async () => {
  await deploy()
  const { services } = api
  const live = api.kernel.db
    .sql('SELECT live_release_id FROM apps WHERE id = ?')
    .pluck()
    .get(app_id) as string
  const settings = JSON.parse(
    api.kernel.db.sql('SELECT settings FROM releases WHERE id = ?').pluck().get(live) as string,
  )
  Object.assign(settings.stack[0], { command: ['old', 'command'], working_dir: null, entrypoint: null })
  settings.stack[0].health_check.command = ['old', 'check']
  const bound = `releases/services/${live}`
  const { secrets } = api.kernel
  const sealed = secrets.seal(JSON.stringify({ store: { environment: {}, files: [] } }), bound)
  api.kernel.db
    .sql('UPDATE releases SET settings = ?, services = ? WHERE id = ?')
    .run(JSON.stringify(settings), sealed, live)
  await call().post(`/api/apps/${app_id}/stop`, {})
  await services.jobs.idle()
  await call().post(`/api/apps/${app_id}/start`, {})
  await services.jobs.idle()
  expect(made()).toMatchObject({ command: ['old', 'command'] })
  expect(made()).not.toHaveProperty('entrypoint')
})

test('a secret is no argument of a build, however a compose file asks for it, and the log says what to do', async () => {
  const url = 'https://git.example.com/team/built.git'
  const secret = 'canary-of-a-build'
  const compose = (build: object) =>
    api.fakes.git.commit(
      url,
      'main',
      {
        'compose.yaml': JSON.stringify({
          services: {
            web: { build: { context: '.', ...build }, healthcheck: { test: ['CMD', 'true'] } },
          },
        }),
        Dockerfile: 'FROM scratch\nARG NPM_TOKEN\nARG STAGE',
      },
      JSON.stringify(build),
    )
  compose({ args: { STAGE: 'first' } })
  const { body } = await call().post('/api/apps', {
    ...{ name: 'built', git_url: url, source: 'compose', soak_seconds: 0 },
  })
  app_id = body.data.id
  await api.services.jobs.idle()
  await call().post(`/api/apps/${app_id}/env/import`, {
    variables: { NPM_TOKEN: secret, STAGE: 'production' },
    details: { NPM_TOKEN: { secret: true }, STAGE: { secret: false } },
  })
  for (const args of [
    { NPM_TOKEN: '${NPM_TOKEN}', STAGE: '${STAGE}' },
    ['NPM_TOKEN', 'STAGE'],
    ['NPM_TOKEN=${NPM_TOKEN}', 'STAGE=${STAGE}'],
    { NPM_TOKEN: 'https://user:${NPM_TOKEN}@example.com', STAGE: '${STAGE}' },
  ]) {
    compose({ args })
    await deploy()
    const build = api.fakes.engine.calls.findLast(({ method }) => method === 'buildImage')!.args[0] as {
      build_args: Record<string, string>
      secrets: Record<string, string>
    }
    expect(build.build_args).toMatchObject({ STAGE: 'production' })
    expect(JSON.stringify(build.build_args)).not.toContain(secret)
    expect(build.secrets).toEqual({ NPM_TOKEN: secret })
    const [newest] = (await call().get(`/api/apps/${app_id}/deployments`)).body.data
    const { text } = await call().get(`/api/deployments/${newest.id}/logs`)
    expect(text).toContain('--mount=type=secret,id=NPM_TOKEN')
    expect(text).not.toContain(secret)
  }
  compose({ dockerfile_inline: 'FROM scratch\nRUN login ${NPM_TOKEN}' })
  expect(await deploy()).toBe('failed')
  const [newest] = (await call().get(`/api/apps/${app_id}/deployments`)).body.data
  expect(newest.error).toMatchObject({
    code: 'compose_refused',
    hint: expect.stringContaining('id=NPM_TOKEN'),
  })
  expect(JSON.stringify(newest)).not.toContain(secret)
})
