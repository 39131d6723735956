import { afterEach, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const labelsOf = (app: string) => ({
  'portreeve.managed': 'true',
  'portreeve.installation': 'default',
  'portreeve.app': app,
  'portreeve.project': `prj_${app}`,
  'portreeve.release': `rel_${app}`,
  'portreeve.index': '0',
})

/** An engine with a container of two apps each, of which it tells nothing more of the first. */
async function engineWith(state: string) {
  const server = await createEngineStandIn(({ path }, response) => {
    if (path === '/containers/json')
      return json(
        response,
        ['one', 'two'].map((app) => ({
          Id: app,
          Names: [`/rel_${app}-0`],
          Labels: labelsOf(app),
          ImageID: 'sha256:1',
          State: app === 'one' ? state : 'running',
        })),
      )
    if (path === '/containers/one/json') return void response.destroy()
    json(response, {
      Id: 'two',
      Name: '/rel_two-0',
      Image: 'sha256:1',
      RestartCount: 0,
      State: { Status: 'running', Running: true },
      Config: { Labels: labelsOf('two'), Tty: false },
      HostConfig: {},
      NetworkSettings: { Networks: { net: { IPAddress: '10.0.0.2' } } },
    })
  })
  const engine = createDockerEngine({ docker_host: server.docker_host })
  closing.push(engine.close, server.close)
  return engine
}

test('a container that cannot be started, and of which the engine tells nothing, hides no other', async () => {
  const engine = await engineWith('created')
  for (let round = 0; round < 2; round++)
    expect(await engine.instances({})).toMatchObject([
      { id: 'one', state: 'created', project_id: 'prj_one', release_id: 'rel_one', process: 'web', index: 0 },
      { id: 'two', state: 'running', address: '10.0.0.2' },
    ])
})

test('of one that runs nothing is made up', async () => {
  const engine = await engineWith('running')
  await expect(engine.instances({})).rejects.toMatchObject({ code: 'unavailable' })
})
