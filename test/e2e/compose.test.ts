import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { isAlive } from '../../bench/support/alive.ts'

let portreeve: Portreeve
let forge: GitServer
let app_id: string

/** Web answers with its version and what the database serves; the worker writes a line a second. */
const stackOf = ({ web = 'one', worker = 'one', check = 'true' }) => `
x-base: &base { image: "${BUSYBOX_IMAGE}", stop_grace_period: 1s }
services:
  web:
    <<: *base
    command: ["sh", "-c", "mkdir -p /www && echo ${web} $\${PASSWORD} > /www/index.html && wget -q -O /www/data http://db:9000/log; exec httpd -f -p 8080 -h /www"]
    environment: { PASSWORD: "\${SERVICE_PASSWORD_DB}" }
    ports: ["80:8080"]
    depends_on: { db: { condition: service_healthy }, migrate: { condition: service_completed_successfully } }
  admin:
    <<: *base
    command: ["sh", "-c", "mkdir -p /www && cp /etc/page /www/index.html && exec httpd -f -p 9090 -h /www"]
    configs: [{ source: page, target: /etc/page }]
    ports: ["9090"]
  worker:
    <<: *base
    command: ["sh", "-c", "while true; do echo ${worker}; sleep 1; done"]
    tmpfs: /scratch
    read_only: true
  migrate:
    <<: *base
    command: ["sh", "-c", "wget -q -O - http://db:9000/log"]
    depends_on: { db: { condition: service_healthy } }
  db:
    <<: *base
    command: ["sh", "-c", "echo started >> /data/log; exec httpd -f -p 9000 -h /data"]
    expose: ["9000"]
    volumes: ["data:/data"]
    healthcheck: { test: ["CMD-SHELL", "wget -q -O /dev/null http://127.0.0.1:9000/log && ${check}"], interval: 1s, retries: 2, timeout: 2s }
volumes: { data: }
configs: { page: { content: "admin page" } }
`

const get = async (path: string) => (await portreeve.call('GET', path)).body.data
const post = (path: string, body: unknown = {}) => portreeve.call('POST', path, body)
const containers = (id = app_id): Record<string, string> =>
  Object.fromEntries(
    docker(
      'ps',
      '--no-trunc',
      '--filter',
      `label=portreeve.app=${id}`,
      '--format',
      '{{with .Label "portreeve.process"}}{{.}}{{else}}web{{end}} {{.ID}}',
    )
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ') as [string, string]),
  )
const services = async () => (await get(`/api/apps/${app_id}/services`)) as any[]
const service = async (name: string) => (await services()).find((one) => one.name === name)
const logOf = async (id: string): Promise<string> =>
  (await get(`/api/deployments/${id}/logs`)).map(({ text }: { text: string }) => text).join('\n')
async function change(compose: string) {
  expect((await portreeve.call('PUT', `/api/apps/${app_id}`, { compose })).status).toBe(200)
  const asked = await post(`/api/apps/${app_id}/deploy`)
  expect(asked.status).toBe(201)
  return portreeve.untilDeployment(asked.body.data.id)
}

beforeAll(async () => {
  await ensureBusyboxImage()
  forge = await startGitServer()
  portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host } })
})
afterAll(async () => {
  await portreeve?.dispose()
  await forge?.close()
})

test('a stack that asks for the host is refused with the path of every key', async () => {
  const compose = 'services: { web: { image: a, privileged: true, volumes: ["/:/host"], pidd: 1 } }'
  const answer = await post('/api/apps', { name: 'bad', compose })
  expect(answer.status).toBe(422)
  expect(answer.body.error.details.map(({ path }: { path: string }) => path)).toEqual([
    'compose.services.web.privileged',
    'compose.services.web.pidd',
    'compose.services.web.volumes.0',
  ])
  expect((await get('/api/apps')).length).toBe(0)
})

test('a stack of a web, a worker and a database comes up, each as far as its dependencies ask', async () => {
  const created = await post('/api/apps', {
    name: 'shop',
    compose: stackOf({}),
    soak_seconds: 0,
    health_check: { grace_s: 5 },
  })
  expect([created.status, created.body]).toMatchObject([201, { data: { source: 'compose' } }])
  app_id = created.body.data.id
  const ended = await portreeve.untilDeployment(created.body.data.latest_deployment.id)
  expect([ended.status, ended.error]).toEqual(['live', null])
  expect(Object.keys(containers()).sort()).toEqual(['admin', 'db', 'web', 'worker'])
  const log = await logOf(ended.id)
  expect(log).toContain('Running the service migrate to its end.')
  const page = await portreeve.visit('shop.apps.test')
  expect(page.body).toMatch(/^one \S{32}\n$/)
  expect((await portreeve.visit('shop.apps.test', '/data')).body).toBe('started\n')
  expect((await portreeve.visit('admin-shop.apps.test')).body).toBe('admin page')
  expect(await services()).toMatchObject([
    { name: 'admin', status: 'running', public_port: 9090, stateful: false },
    { name: 'db', status: 'running', public_port: null, url: null, stateful: true, internal_host: 'db' },
    { name: 'web', status: 'running', public_port: 8080 },
    { name: 'worker', status: 'running', replicas: 1 },
  ])
  const web = await service('web')
  expect(await get(`/api/services/${web.id}/url`)).toMatchObject({ hostname: 'shop.apps.test' })
  expect(await get(`/api/services/${web.id}/credentials`)).toEqual({
    id: web.id,
    credentials: [{ name: 'SERVICE_PASSWORD_DB', value: page.body.trim().slice(4), generated: true }],
  })
  const lines = await get('/api/audit-logs')
  expect(
    lines.some((line: any) => line.action === 'service.credentials' && line.resource.id === web.id),
  ).toBe(true)
  expect(await get(`/api/services/${(await service('db')).id}/status`)).toMatchObject({
    state: 'running',
    health: 'healthy',
    running: 1,
    instances: [{ process: 'db', health: 'healthy' }],
  })
})

test('a change of one service leaves the containers of all others alone, and a rollback too', async () => {
  const before = containers()
  const ended = await change(stackOf({ web: 'two' }))
  expect([ended.status, ended.error]).toEqual(['live', null])
  expect((await portreeve.visit('shop.apps.test')).body).toMatch(/^two /)
  const { web, ...others } = containers()
  const { web: old_web, ...old_others } = before
  expect(others).toEqual(old_others)
  expect(web).not.toBe(old_web)
  expect(await logOf(ended.id)).toContain('Not changed, and not touched: admin, worker, db, migrate.')
  const asked = await post(`/api/apps/${app_id}/rollback`)
  const back = await portreeve.untilDeployment(asked.body.data.id)
  expect([back.status, back.error]).toEqual(['live', null])
  expect((await portreeve.visit('shop.apps.test')).body).toMatch(/^one /)
  const { web: web_again, ...others_again } = containers()
  expect(others_again).toEqual(old_others)
  expect(web_again).not.toBe(web)
})

test('what holds a volume is replaced stop-first and says so; one that fails brings the whole old release back', async () => {
  const ended = await change(stackOf({ check: ':' }))
  expect([ended.status, ended.error]).toEqual(['live', null])
  expect(await logOf(ended.id)).toContain('The service db holds a volume')
  const before = await portreeve.visit('shop.apps.test')
  const failed = await change(stackOf({ web: 'three', worker: 'three', check: 'false' }))
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'not_ready' } })
  expect(await portreeve.visit('shop.apps.test')).toEqual(before)
  expect(Object.keys(containers()).sort()).toEqual(['admin', 'db', 'web', 'worker'])
  expect((await get(`/api/apps/${app_id}`)).status).toBe('running')
  const db = await service('db')
  expect((await get(`/api/services/${db.id}/status`)).health).toBe('healthy')
})

test('a single service is stopped, started and restarted; the others are not touched', async () => {
  const admin = await service('admin')
  const before = containers()
  expect((await post(`/api/services/${admin.id}/stop`)).status).toBe(200)
  await eventually('The service being stopped', () => (containers().admin === undefined ? true : undefined))
  expect((await post(`/api/services/${admin.id}/stop`)).status).toBe(409)
  expect((await service('admin')).status).toBe('stopped')
  expect((await portreeve.visit('admin-shop.apps.test')).status).toBe(503)
  expect((await portreeve.visit('shop.apps.test')).status).toBe(200)
  await eventually('The stop being done', async () =>
    (await post(`/api/services/${admin.id}/start`)).status === 200 ? true : undefined,
  )
  await eventually('The service being back', async () =>
    (await portreeve.visit('admin-shop.apps.test')).status === 200 ? true : undefined,
  )
  await eventually('The restart being taken', async () =>
    (await post(`/api/services/${admin.id}/restart`)).status === 200 ? true : undefined,
  )
  const { latest_deployment } = await get(`/api/apps/${app_id}`)
  expect((await portreeve.untilDeployment(latest_deployment.id)).status).toBe('live')
  const { admin: old_admin, ...old_others } = before
  const { admin: new_admin, ...others } = containers()
  expect(others).toEqual(old_others)
  expect(new_admin).not.toBe(old_admin)
})

test('services that vanish are made again, those of an earlier release too', async () => {
  const before = containers()
  docker('rm', '-f', before.worker!)
  await eventually('The worker being back', () => {
    const { worker } = containers()
    return worker && worker !== before.worker ? true : undefined
  })
  const { worker: _new, ...others } = containers()
  const { worker: _old, ...old_others } = before
  expect(others).toEqual(old_others)
})

test('a backup of the stack is restored as a new app beside it, with the data that it had', async () => {
  expect(await change(stackOf({ web: 'kept' }))).toMatchObject({ status: 'live' })
  const kept = (id = app_id) => docker('exec', containers(id).db!, 'cat', '/data/log', '/data/kept')
  docker(
    'exec',
    containers().db!,
    'sh',
    '-c',
    'seq 1 1000 > /data/kept && mkdir /data/deep && ln -s ../kept /data/deep/link',
  )
  const before = kept()
  const { id } = (await post('/api/backups', { target: 'app', target_id: app_id })).body.data
  const made = await eventually('The backup ending', async () => {
    const backup = await get(`/api/backups/${id}`)
    return ['succeeded', 'failed'].includes(backup.status) ? backup : undefined
  })
  expect(made, made.error).toMatchObject({ status: 'succeeded' })
  docker('exec', containers().db!, 'sh', '-c', 'echo later > /data/kept')

  const asked = (await post(`/api/backups/${id}/restore`, { mode: 'new', name: 'copy' })).body.data
  const copy = asked.target_id
  const job = await eventually('The restore ending', async () => {
    const found = await get(`/api/system/jobs/${asked.job_id}`)
    return ['succeeded', 'failed'].includes(found.status) ? found : undefined
  })
  expect(job).toMatchObject({ status: 'succeeded', error: null })
  await portreeve.untilApp(copy, 'running')
  // The database of the copy has begun once more than the one that was backed up.
  expect(kept(copy)).toBe(before.replace(/^1$/m, 'started\n1'))
  expect(docker('exec', containers(copy).db!, 'cat', '/data/deep/link').split('\n')).toHaveLength(1000)
  expect(Object.keys(containers(copy)).sort()).toEqual(Object.keys(containers()).sort())
  const page = await portreeve.visit('copy.apps.test')
  expect([page.status, page.body]).toEqual([200, (await portreeve.visit('shop.apps.test')).body])
  expect(kept()).toMatch(/\nlater$/)

  await portreeve.call('DELETE', `/api/apps/${copy}?volumes=true&skip_backup=true`)
  await eventually('The copy being gone', async () =>
    (await portreeve.call('GET', `/api/apps/${copy}`)).status === 404 ? true : undefined,
  )
  expect(containers(copy)).toEqual({})
})

test('an app that is deleted with its volumes leaves nothing behind', async () => {
  expect((await portreeve.call('DELETE', `/api/apps/${app_id}?volumes=true`)).status).toBe(200)
  await eventually('The app being gone', async () =>
    (await portreeve.call('GET', `/api/apps/${app_id}`)).status === 404 ? true : undefined,
  )
  expect((await portreeve.call('GET', '/api/volumes')).body.total).toBe(0)
  expect(containers()).toEqual({})
  expect(docker('network', 'ls', '-q', '--filter', `label=portreeve.app=${app_id}`)).toBe('')
})

const REPOSITORY = (version: string) => ({
  'compose.yaml': `
services:
  web:
    build: { context: web, args: { COLOUR: "\${COLOUR:-red}" } }
    env_file: [settings/web.env, { path: settings/own.env, required: false }]
    ports: ["8080"]
    x-portreeve: { health_path: / }
  worker:
    build: { context: ., dockerfile_inline: "FROM ${BUSYBOX_IMAGE}\\nCOPY settings/web.env /told" }
    command: ["sh", "-c", "while true; do cat /told; sleep 1; done"]
    stop_grace_period: 1s
  console:
    image: "${BUSYBOX_IMAGE}"
    command: ["sh", "-c", "while true; do echo console; sleep 1; done"]
    stop_grace_period: 1s
    profiles: [debug]
`,
  'web/Dockerfile': `FROM ${BUSYBOX_IMAGE}
ARG COLOUR
RUN mkdir -p /www && echo "${version} $COLOUR" > /www/index.html
CMD ["sh", "-c", "echo $GREETING >> /www/index.html; exec httpd -f -p 8080 -h /www"]
`,
  'settings/web.env': 'GREETING="of the file"\n',
})
/** Texts of what a service printed, as the kept log has them. */
const printed = async (name: string): Promise<string[]> =>
  (await get(`/api/apps/${app_id}/logs?process=${name}`)).map(({ text }: { text: string }) => text)

test('a repository with a compose file is detected, built and run with its files, profiles and own logs', async () => {
  const { url } = forge.repository('stack')
  forge.repository('stack').commit(REPOSITORY('one'))
  const detected = await post('/api/apps/detect', { git_url: url })
  expect([
    detected.status,
    detected.body.data?.compose?.services?.map(({ name }: any) => name).sort(),
  ]).toEqual([200, ['web', 'worker']])
  const created = await post('/api/apps', { name: 'stack', git_url: url, source: 'compose', soak_seconds: 0 })
  expect(created.status, JSON.stringify(created.body)).toBe(201)
  app_id = created.body.data.id
  const first = await portreeve.untilDeployment(created.body.data.latest_deployment.id)
  expect([first.status, first.error], await logOf(first.id)).toEqual(['live', null])
  expect((await portreeve.visit('stack.apps.test')).body).toBe('one red\nof the file\n')
  expect(Object.keys(containers()).sort()).toEqual(['web', 'worker'])
  await eventually('The line of the worker', async () =>
    (await printed('worker')).includes('GREETING="of the file"') ? true : undefined,
  )
  expect(await printed('web')).not.toContain('GREETING="of the file"')

  await post(`/api/apps/${app_id}/env`, { key: 'COMPOSE_PROFILES', value: 'debug' })
  await post(`/api/apps/${app_id}/env`, { key: 'COLOUR', value: 'green' })
  const before = containers()
  const asked = await post(`/api/apps/${app_id}/deploy`)
  const ended = await portreeve.untilDeployment(asked.body.data.id)
  expect([ended.status, ended.error], await logOf(ended.id)).toEqual(['live', null])
  expect((await portreeve.visit('stack.apps.test')).body).toBe('one green\nof the file\n')
  expect(Object.keys(containers()).sort()).toEqual(['console', 'web', 'worker'])
  expect(containers().worker).toBe(before.worker)
})

test('killed with -9 before the switch of a stack, it serves on and the next start ends the deployment', async () => {
  forge.repository('stack').commit(REPOSITORY('two'))
  await portreeve.stop()
  await portreeve.start({ PORTREEVE_CRASH_AT: 'deploy.switch:before' })
  const { worker } = containers()
  const asked = await post(`/api/apps/${app_id}/deploy`)
  await eventually('The crash', () => (isAlive(portreeve.pid()) ? undefined : true))
  expect((await portreeve.visit('stack.apps.test')).body).toBe('one green\nof the file\n')
  await portreeve.start()
  expect(await portreeve.untilDeployment(asked.body.data.id)).toMatchObject({ status: 'live', error: null })
  expect((await portreeve.visit('stack.apps.test')).body).toBe('two green\nof the file\n')
  await eventually('One container of each service being left', () =>
    docker('ps', '-aq', '--filter', `label=portreeve.app=${app_id}`).split('\n').length === 3
      ? true
      : undefined,
  )
  expect(containers().worker).toBe(worker)
})
