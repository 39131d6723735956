import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

let portreeve: Portreeve
let app_id: string
beforeAll(async () => {
  portreeve = await startPortreeve()
  const created = await portreeve.call('POST', '/api/apps', {
    name: 'shop',
    soak_seconds: 1,
    dockerfile: 'FROM nginx:stable',
    port: 80,
    health_check: { path: '/' },
  })
  app_id = created.body.data.id
  await portreeve.untilApp(app_id, 'running')
})
afterAll(() => portreeve?.dispose())

const paths = async () =>
  (await portreeve.call('GET', `/api/apps/${app_id}/logs?type=access&tail=5000`)).body.data.map(
    (line: { request: { path: string } }) => line.request.path,
  ) as string[]
const untilLogged = (path: string) =>
  eventually(
    `${path} being in the log`,
    async () => ((await paths()).includes(path) ? true : undefined),
    10_000,
  )
const visited = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `/${prefix}/${index}`)
async function visit(prefix: string, count: number): Promise<void> {
  for (const path of visited(prefix, count)) await portreeve.visit('shop.apps.test', path)
}

it('what visitors asked for is in the access log of the app within a second or two, without secrets', async () => {
  await portreeve.visit('shop.apps.test', '/cart?item=3&token=canary-of-a-visitor')
  await untilLogged('/cart?item=3&token=[redacted]')
  const { body } = await portreeve.call('GET', `/api/apps/${app_id}/logs?type=access&q=cart`)
  expect(body.data).toHaveLength(1)
  expect(body.data[0]).toMatchObject({
    stream: 'access',
    source: 'shop.apps.test',
    request: {
      method: 'GET',
      status: 404,
      host: 'shop.apps.test',
      client: '127.0.0.1',
      server: expect.stringMatching(/:80$/),
    },
  })
})

it.each<['kill' | 'stop', string]>([
  ['kill', 'killed'],
  ['stop', 'stopped'],
])('after a %s of Portreeve nothing is missing and nothing is there twice', async (how, prefix) => {
  await visit(`before-${prefix}`, 30)
  await portreeve[how]()
  await visit(`while-${prefix}`, 30)
  await portreeve.start()
  await visit(`after-${prefix}`, 5)
  await untilLogged(`/after-${prefix}/4`)
  const found = (await paths()).filter((path) => path.includes(prefix))
  expect(found.sort()).toEqual(
    [
      ...visited(`before-${prefix}`, 30),
      ...visited(`while-${prefix}`, 30),
      ...visited(`after-${prefix}`, 5),
    ].sort(),
  )
})

it('the log goes with the app', async () => {
  const folder = join(portreeve.data_directory, 'logs', 'access')
  expect(readdirSync(folder)).toContain(app_id)
  expect((await portreeve.call('DELETE', `/api/apps/${app_id}`)).status).toBeLessThan(300)
  await eventually('The app being gone', async () =>
    (await portreeve.call('GET', `/api/apps/${app_id}`)).status === 404 ? true : undefined,
  )
  expect(readdirSync(folder)).not.toContain(app_id)
})
