import { afterAll, beforeAll, expect, test } from 'vitest'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

let portreeve: Portreeve
let app_id: string
let volume_id: string
const HOST = 'keeper.apps.test'
/** Writes a line at each start and serves what it has written, as a user without rights. */
const DOCKERFILE = `FROM ${BUSYBOX_IMAGE}
USER nobody
CMD ["sh", "-c", "[ -d /data ] || exec httpd -f -p $PORT -h /www; echo started >> /data/log; cp /etc/keeper/greeting /data/; exec httpd -f -p $PORT -h /data"]`

const post = async (path: string, body: unknown = {}) => {
  const answer = await portreeve.call('POST', path, body)
  expect([answer.status, answer.body]).toMatchObject([201, {}])
  return answer.body.data
}
const visit = async (path: string) => (await portreeve.visit(HOST, path)).body
const containers = () =>
  docker('ps', '-aq', '--filter', `label=portreeve.app=${app_id}`).split('\n').filter(Boolean)
const app = async () => (await portreeve.call('GET', `/api/apps/${app_id}`)).body.data
async function deploy() {
  const { id } = await post(`/api/apps/${app_id}/deploy`)
  const ended = await portreeve.untilDeployment(id)
  expect(ended).toMatchObject({ status: 'live', error: null })
  return ended
}

beforeAll(async () => {
  await ensureBusyboxImage()
  portreeve = await startPortreeve()
  const created = await post('/api/apps', {
    name: 'keeper',
    dockerfile: DOCKERFILE,
    soak_seconds: 0,
    port: 8080,
  })
  app_id = created.id
  await portreeve.untilDeployment(created.latest_deployment.id)
  volume_id = (await post('/api/volumes', { name: 'data' })).id
})
afterAll(async () => {
  await portreeve?.dispose()
  if (volume_id) docker('volume', 'rm', '-f', volume_id)
})

test('a volume and a file are there for an image without rights, and a deployment keeps what is in the volume', async () => {
  expect(await post(`/api/apps/${app_id}/mounts`, { path: '/data', volume_id })).toMatchObject({
    update: 'stop_first',
  })
  await post(`/api/apps/${app_id}/mounts`, { path: '/etc/keeper/greeting', content: 'grüße' })
  await deploy()
  expect([await visit('/log'), await visit('/greeting')]).toEqual(['started\n', 'grüße'])
  const { id } = await deploy()
  expect([await visit('/log'), containers().length]).toEqual(['started\nstarted\n', 1])
  const log = (await portreeve.call('GET', `/api/deployments/${id}/logs`)).body.data as { text: string }[]
  expect(log.some(({ text }) => text.includes('The old instance ends before the new one starts'))).toBe(true)
})

const network = () => docker('network', 'ls', '-q', '--no-trunc', '--filter', 'label=portreeve.project')
/** Removes something of the app's only container while Portreeve does not look; it answers from another one then. */
async function isBackAfter(remove: (container: string) => void): Promise<void> {
  const [before = ''] = containers()
  await portreeve.stop()
  remove(before)
  await portreeve.start()
  await eventually('The app answering from another container', async () => {
    const { status, body } = await portreeve.visit(HOST, '/greeting')
    return status === 200 && body === 'grüße' && !containers().includes(before) ? true : undefined
  })
  expect([(await app()).status, containers().length]).toEqual(['running', 1])
}

test('F11: a network that was removed behind our back is made again, and so is what was in it', async () => {
  await isBackAfter((container) => {
    docker('network', 'disconnect', '--force', network(), container)
    docker('network', 'rm', network())
  })
  await isBackAfter((container) => {
    docker('stop', '--time', '1', container)
    docker('network', 'rm', network())
  })
  expect(network().split('\n')).toHaveLength(1)
})

test('F11: an image that was removed behind our back is made again', async () => {
  await isBackAfter((container) => {
    const image = docker('inspect', '--format', '{{.Image}}', container)
    docker('rm', '-f', container)
    docker('rmi', '--force', image)
  })
})

test('a volume that was removed behind our back stops the app, and is not made anew', async () => {
  // While Portreeve looks, it starts the instance again before the volume can go.
  await portreeve.stop()
  docker('rm', '-f', ...containers())
  docker('volume', 'rm', volume_id)
  await portreeve.start()
  const failed = await eventually('The app being stopped', async () => {
    const found = await app()
    return found.status === 'failed' ? found : undefined
  })
  expect(failed.last_error).toContain('is no longer on the server')
  await eventually('The volume being told as missing', async () =>
    (await portreeve.call('GET', '/api/volumes')).body.data[0].status === 'missing' ? true : undefined,
  )
  expect([containers(), docker('volume', 'ls', '-q', '--filter', `name=${volume_id}`)]).toEqual([[], ''])
  expect((await portreeve.visit(HOST)).status).toBe(503)
})

test('an app that is deleted with its volumes leaves nothing behind', async () => {
  expect((await portreeve.call('DELETE', `/api/apps/${app_id}?volumes=true`)).status).toBe(200)
  await eventually('The app being gone', async () =>
    (await portreeve.call('GET', `/api/apps/${app_id}`)).status === 404 ? true : undefined,
  )
  expect((await portreeve.call('GET', '/api/volumes')).body.total).toBe(0)
})
