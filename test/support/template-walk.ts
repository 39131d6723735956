import { request } from 'node:http'
import { connect } from 'node:net'
import { expect } from 'vitest'
import { BUSYBOX_IMAGE } from './engine-images.ts'
import { docker, eventually, type Portreeve } from './portreeve.ts'
import { ensureTemplateImages, nextVersion } from './template-images.ts'
import { type Ask, type Dial, STACKS } from './template-stacks.ts'

let walks = 0

/** A client of one host name behind the edge. */
const requestOf =
  ({ edge_port }: Portreeve, host: string): Ask =>
  (method, path, { headers = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      const asked = request({
        ...{ host: '127.0.0.1', port: edge_port, path, method, agent: false },
        headers: { host, ...headers },
      })
      asked.on('error', reject).on('response', (response) => {
        const parts: Buffer[] = []
        response
          .on('data', (part: Buffer) => parts.push(part))
          .on('error', reject)
          .on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(parts).toString(),
            }),
          )
      })
      asked.end(body)
    })

const containersOf = (app_id: string): string[] =>
  docker('ps', '-aq', '--filter', `label=portreeve.app=${app_id}`).split('\n').filter(Boolean)

/** A client in the network of a stack that has one container. */
const dialOf =
  (app_id: string): Dial =>
  (port) =>
    new Promise((resolve, reject) => {
      const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}'
      const [host] = docker('inspect', '--format', format, containersOf(app_id)[0]!).split(' ')
      const socket = connect(port, host)
      socket.once('connect', () => resolve(socket)).once('error', reject)
    })

/** What happens to data: everything in the volumes of a stack is removed while it runs. */
function damage(app_id: string): void {
  const format = '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}'
  const names = containersOf(app_id).flatMap((id) => docker('inspect', '--format', format, id).split(' '))
  for (const name of new Set(names.filter(Boolean)))
    docker(
      'run',
      '--rm',
      '--volume',
      `${name}:/data`,
      BUSYBOX_IMAGE,
      'sh',
      '-c',
      // A server that runs writes into the folder that is being emptied.
      'until rm -rf /data/* /data/.[!.]*; do :; done',
    )
}

/**
 * A template as its user meets it: deployed, used by its client, backed up, damaged, restored, upgraded and
 * deleted. Throws where one of it goes wrong.
 */
export async function walkTemplate(portreeve: Portreeve, slug: string): Promise<void> {
  const stack = STACKS[slug]
  if (!stack) throw new Error(`Nobody told how ${slug} is used.`)
  await ensureTemplateImages(slug)
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await portreeve.call(method, path, body)
    expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
    return answer.body.data
  }
  const live = async (id: string) => {
    const { status, error } = await portreeve.untilDeployment(id)
    expect([status, error]).toEqual(['live', null])
  }
  const ended = (path: string) =>
    eventually(
      `${path} ending`,
      async () => {
        const work = await call('GET', path)
        return ['succeeded', 'failed', 'cancelled'].includes(work.status) ? work : undefined
      },
      180_000,
    )

  // Another attempt finds what the one before left.
  walks += 1
  const name = `${slug}-${walks}`
  const app = await call('POST', `/api/templates/${slug}/deploy`, { name })
  await live(app.latest_deployment.id)
  const services = await call('GET', `/api/apps/${app.id}/services`)
  const shown = await Promise.all(
    services.map(({ id }: { id: string }) => call('GET', `/api/services/${id}/credentials`)),
  )
  const credentials = Object.fromEntries(
    shown.flatMap(({ credentials: some }) => some.map(({ name, value }: any) => [name, value])),
  )
  const used = stack.use(requestOf(portreeve, `${name}.apps.test`), credentials, dialOf(app.id))
  await used.begin?.()
  const has = async (mark: string, desired: boolean) =>
    eventually(`${slug} ${desired ? 'showing' : 'without'} ${mark}`, async () =>
      (await used.shows(mark)) === desired ? true : undefined,
    )
  await used.write('first')
  await has('first', true)

  const backup = await call('POST', '/api/backups', { target: 'app', target_id: app.id, pause_app: true })
  const made = await ended(`/api/backups/${backup.id}`)
  expect([made.status, made.error], JSON.stringify(made)).toEqual(['succeeded', null])
  await portreeve.untilApp(app.id, 'running')
  await eventually(`${slug} taking more`, async () => {
    await used.write('second')
    return true
  })
  await has('second', true)
  damage(app.id)
  const { job_id } = await call('POST', `/api/backups/${backup.id}/restore`, { mode: 'in_place' })
  const restored = await ended(`/api/system/jobs/${job_id}`)
  expect([restored.status, restored.error], JSON.stringify(restored)).toEqual(['succeeded', null])
  await portreeve.untilApp(app.id, 'running')
  await has('first', true)
  await has('second', false)

  const { upgrade } = await call('GET', `/api/templates/${slug}`)
  expect(upgrade.length, 'notes on upgrades').toBeGreaterThan(20)
  const { compose } = await call('GET', `/api/templates/${slug}/compose`)
  await call('PUT', `/api/apps/${app.id}`, {
    ...{ compose: await nextVersion(slug, compose), soak_seconds: 0 },
  })
  await live((await call('POST', `/api/apps/${app.id}/deploy`, {})).id)
  for (const { image } of await call('GET', `/api/apps/${app.id}/services`)) expect(image).toMatch(/-next$/)
  await has('first', true)
  await call('DELETE', `/api/apps/${app.id}?volumes=true`)
  await eventually(`${slug} being gone`, async () =>
    (await portreeve.call('GET', `/api/apps/${app.id}`)).status === 404 ? true : undefined,
  )
}
