import { beforeAll, describe, expect, it } from 'vitest'
import type { GitServer } from '#test/support/git-server'
import { docker, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { leftovers } from '../../bench/support/leftovers.ts'
import { startProber } from '#test/support/probe'
import { deployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

const server = useForge()
let portreeve: Portreeve
let forge: GitServer
let app_id: string
beforeAll(async () => {
  ;({ portreeve, forge } = server)
  const repository = forge.repository('served')
  repository.commit(nodeApp('first'))
  app_id = (await deployed(portreeve, { name: 'served', git_url: repository.url })).id
})

/** Whether the process has ended; a signal 0 only asks. */
function ended(pid: number): true | undefined {
  try {
    process.kill(pid, 0)
    return undefined
  } catch {
    return true
  }
}

describe('kill -9 in the middle of a deployment', () => {
  it.each(['deploy.build:after', 'deploy.switch:before', 'deploy.retire:before'])(
    'at %s: the app serves on, the next start ends the deployment, and nothing is left over',
    async (point) => {
      forge.repository('served').commit(nodeApp(point))
      await portreeve.stop()
      await portreeve.start({ PORTREEVE_CRASH_AT: point })
      const prober = startProber(portreeve.edge_port, 'served.apps.test')
      const { body } = await portreeve.call('POST', `/api/apps/${app_id}/deploy`, {})
      await eventually(`The crash at ${point}`, () => ended(portreeve.pid()))
      await portreeve.start()
      expect(await portreeve.untilDeployment(body.data.id)).toMatchObject({
        status: 'live',
        error: null,
      })
      await prober.stop()
      expect(prober.failures()).toEqual([])
      expect((await portreeve.visit('served.apps.test')).body).toBe(point)
      const log: { step: string; text: string }[] = (
        await portreeve.call('GET', `/api/deployments/${body.data.id}/logs`)
      ).body.data
      expect(
        log
          .filter(({ text }) => text === 'Portreeve was restarted; this step begins anew.')
          .map(({ step }) => step),
      ).toEqual([/\.(\w+):/.exec(point)![1]])
      await eventually(
        'Everything being cleared',
        async () => ((await leftovers(portreeve, app_id)).length === 0 ? true : undefined),
        15_000,
      )
      expect(await leftovers(portreeve, app_id)).toEqual([])
    },
  )
})

it('two installations on one engine leave each other’s apps alone', async () => {
  const running = docker('ps', '-q', '--filter', `label=portreeve.app=${app_id}`)
  expect(running).not.toBe('')
  const other = await startPortreeve()
  try {
    // The first pass of its reconciler is what would remove containers of nobody that it knows.
    const created = await other.call('POST', '/api/apps', {
      name: 'neighbour',
      dockerfile:
        'FROM node:22-slim\nCMD ["node", "-e", "require(\'http\').createServer((q,s)=>s.end(\'hi\')).listen(3000)"]',
      port: 3000,
      soak_seconds: 0,
    })
    await other.untilApp(created.body.data.id, 'running')
    await other.untilDeployment(created.body.data.latest_deployment.id)
    expect(docker('ps', '-q', '--filter', `label=portreeve.app=${app_id}`)).toBe(running)
    expect((await portreeve.visit('served.apps.test')).status).toBe(200)
  } finally {
    await other.dispose()
  }
})
