/**
 * Portreeve is killed with -9 before and after every step of a deployment, of a rollback and of the app's
 * lifecycle, and at random times, while an app is probed 20 times a second. `npx node bench/crash.ts
 * [--random=10] [--sweep=1]`
 */
import { eventually, nodeApp, type Portreeve } from '#test/support/portreeve'
import { createDeployCrashes } from './support/deploy-crashes.ts'
import { leftovers, remains } from './support/leftovers.ts'
import { startProber } from '#test/support/probe'
import { createReport, numberOptions } from './support/report.ts'
import { deployed, onStage } from './support/stage.ts'
import { createSweep } from './support/sweep.ts'

const DEPLOY_STEPS = ['clone', 'detect', 'build', 'release', 'start', 'verify', 'switch', 'soak', 'retire']
const RANDOM_WINDOW_MS = 3500
/** Time for what follows a job, such as the removal of what nobody owns. */
const SETTLE_MS = 10_000
const options = numberOptions({ random: 10, sweep: 1 })
const report = createReport('kill -9 of Portreeve at every step, with an app probed 20 times a second')
const sweep = createSweep(report)
const { bothSides, told, dieAt, ended, faults } = sweep

await onStage(async (stage) => {
  const { portreeve } = stage
  const app = await stage.app('served')
  const crashes = createDeployCrashes({
    ...{ portreeve, sweep, app, filesOf: nodeApp },
    ...{ window_ms: RANDOM_WINDOW_MS, settle_ms: SETTLE_MS },
  })
  crashes.change()
  await deployed(portreeve, app.id)
  const prober = startProber(portreeve.edge_port, app.host)
  if (options.sweep === 1) {
    for (const verb of ['deploy', 'rollback'] as const)
      for (const step of DEPLOY_STEPS) {
        if (step === 'soak') await portreeve.call('PUT', `/api/apps/${app.id}`, { soak_seconds: 1 })
        await bothSides(`deploy.${step}`, (point) => crashes.at(point, verb))
      }
    const other = await stage.app('bystander')
    await bothSides('app.stop.stop', (point) => crashLifecycle(portreeve, other.id, point, 'stop', 'stopped'))
    for (const step of ['start', 'verify', 'switch'])
      await bothSides(`app.start.${step}`, (point) =>
        crashLifecycle(portreeve, other.id, point, 'start', 'running'),
      )
    for (const step of ['route', 'containers', 'images', 'files'])
      await bothSides(`app.delete.${step}`, async (point) =>
        crashDelete(portreeve, (await stage.app(`gone-${point.replaceAll(/[.:]/g, '-')}`)).id, point),
      )
  }
  for (let round = 1; round <= options.random; round += 1)
    await told(`random kill ${round}`, () => crashes.anytime(round))
  await sweep.close(prober)
})
report.end()

async function crashLifecycle(
  portreeve: Portreeve,
  app_id: string,
  point: string,
  verb: 'stop' | 'start',
  status: string,
): Promise<void> {
  const before = verb === 'stop' ? 'start' : 'stop'
  const { body } = await portreeve.call('GET', `/api/apps/${app_id}`)
  if (body.data.status === status) {
    await portreeve.call('POST', `/api/apps/${app_id}/${before}`)
    await portreeve.untilApp(app_id, before === 'stop' ? 'stopped' : 'running')
  }
  await dieAt(portreeve, point, () => portreeve.call('POST', `/api/apps/${app_id}/${verb}`))
  await portreeve.untilApp(app_id, status)
  ended()
  const found =
    status === 'running'
      ? await leftovers(portreeve, app_id)
      : remains(portreeve, app_id).filter((name) => !name.startsWith('image'))
  if (found.length > 0) faults.push(`${point}: ${found.join('; ')}`)
}

async function crashDelete(portreeve: Portreeve, app_id: string, point: string): Promise<void> {
  await dieAt(portreeve, point, () => portreeve.call('DELETE', `/api/apps/${app_id}`))
  await eventually('The app being gone', async () =>
    (await portreeve.call('GET', `/api/apps/${app_id}`)).status === 404 ? true : undefined,
  )
  ended()
  const found = remains(portreeve, app_id)
  if (found.length > 0) faults.push(`${point}: ${found.join('; ')}`)
}
