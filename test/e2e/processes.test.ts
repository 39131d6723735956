import { afterAll, beforeAll, expect, test } from 'vitest'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

let portreeve: Portreeve
const DOCKERFILE = `FROM ${BUSYBOX_IMAGE}\nCMD ["httpd", "-f", "-p", "8080", "-h", "/etc"]`
const WORKER = { command: 'echo working; exec sleep 600', grace_s: 1 }

async function create(name: string, more: Record<string, unknown>) {
  const created = await portreeve.call('POST', '/api/apps', {
    name,
    dockerfile: DOCKERFILE,
    soak_seconds: 1,
    port: 8080,
    ...more,
  })
  expect([created.status, created.body]).toMatchObject([201, {}])
  const { id, latest_deployment } = created.body.data
  return { id: id as string, deployment: await portreeve.untilDeployment(latest_deployment.id) }
}
const running = (id: string) =>
  docker('ps', '--format', '{{.Names}}', '--filter', `label=portreeve.app=${id}`)
    .split('\n')
    .map((name) => name.replace(/^rel_[a-z0-9]+-/, ''))
    .sort()

beforeAll(async () => {
  await ensureBusyboxImage()
  portreeve = await startPortreeve()
})
afterAll(() => portreeve?.dispose())

test('a worker runs beside web, is told by its lines in the log, and comes back when it vanished', async () => {
  const { id, deployment } = await create('shop', { processes: { worker: { ...WORKER, replicas: 2 } } })
  expect(deployment).toMatchObject({ status: 'live', error: null })
  expect(running(id)).toEqual(['0', 'worker-0', 'worker-1'])
  expect((await portreeve.visit('shop.apps.test', '/passwd')).body).toContain('root:')
  const log = (await portreeve.call('GET', `/api/apps/${id}/logs`)).body.data as { text: string }[]
  expect(log.filter(({ text }) => text === 'working')).toHaveLength(2)
  docker('rm', '-f', docker('ps', '-q', '--filter', `name=worker-1`, '--filter', `label=portreeve.app=${id}`))
  await eventually('The worker being back', () => (running(id).length === 3 ? true : undefined))
})

test('a bot without web goes live without a port and a name, and one that ends fails with its exit code', async () => {
  const bot = await create('bot', { processes: { web: { replicas: 0 }, bot: WORKER } })
  expect(bot.deployment).toMatchObject({ status: 'live', error: null })
  expect([running(bot.id), (await portreeve.visit('bot.apps.test')).status]).toEqual([['bot-0'], 404])
  const broken = await create('broken', { processes: { web: { replicas: 0 }, bot: { command: 'exit 7' } } })
  expect(broken.deployment.error).toMatchObject({
    code: 'exited',
    message: expect.stringContaining('The process bot of the app exited with code 7'),
  })
})
