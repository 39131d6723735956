import { afterEach, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'
import { testWorkload } from '#test/support/workload'

const INSTALLATION = 'installation_test'
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** An engine that starts a command and breaks off whoever waits for its end, so many times. */
async function engineThatBreaksOff(times: number) {
  let waits = 0
  let state: 'none' | 'running' | 'exited' = 'none'
  const created: string[] = []
  const { docker_host, close } = await createEngineStandIn(({ method, path, body }, response) => {
    if (path.endsWith('/containers/create')) {
      created.push(body)
      return json(response, { Id: 'c1' }, 201)
    }
    if (path.endsWith('/start')) {
      state = 'running'
      return json(response, {}, 204)
    }
    if (path.endsWith('/wait')) {
      waits += 1
      if (waits <= times) return void response.destroy()
      state = 'exited'
      return json(response, { StatusCode: 3 })
    }
    if (path.endsWith('/logs')) return state === 'exited' ? void response.end() : void response.destroy()
    if (method === 'DELETE') {
      state = 'none'
      return json(response, {}, 204)
    }
    if (path.endsWith('/json') && state !== 'none')
      return json(response, {
        Id: 'c1',
        Name: '/rel_x-release',
        Config: { Labels: { 'portreeve.installation': INSTALLATION } },
        State: { Status: state, Running: state === 'running', ExitCode: state === 'exited' ? 3 : 0 },
      })
    return json(response, { message: 'There is none.' }, 404)
  })
  const engine = createDockerEngine({ docker_host, installation: INSTALLATION, log: () => {} } as never)
  closing.push(() => engine.close(), close)
  return { engine, created, waits: () => waits }
}

test('a command goes on where only the connection to its engine broke: how it ended is waited for again', async () => {
  const { engine, created, waits } = await engineThatBreaksOff(2)
  const spec = testWorkload({ release_id: 'rel_x', image: 'x:1', network: 'n' })
  const result = await engine.runOnce(
    { ...spec, purpose: 'release', timeout_ms: 60_000, onLog: () => {} },
    new AbortController().signal,
  )
  expect([result.exit_code, result.timed_out, created.length, waits()]).toEqual([3, false, 1, 3])
})
