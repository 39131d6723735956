/**
 * Portreeve is killed with -9 before and after every step of a deployment, of a rollback and of the app's
 * lifecycle, and at random times, while an app is probed 20 times a second. `npx node bench/crash.ts
 * [--random=10] [--sweep=1]`
 */
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, nodeApp, type Portreeve } from '#test/support/portreeve'
import { leftovers, remains } from './support/leftovers.ts'
import { startProber } from '#test/support/probe'
import { createReport, numberOptions } from './support/report.ts'
import { deployed, onStage, type StagedApp, startDeployment } from './support/stage.ts'
import { createSweep } from './support/sweep.ts'

const DEPLOY_STEPS = ['clone', 'detect', 'build', 'release', 'start', 'verify', 'switch', 'soak', 'retire']
const RANDOM_WINDOW_MS = 3500
/** Time for what follows a job, such as the removal of what nobody owns. */
const SETTLE_MS = 10_000
const options = numberOptions({ random: 10, sweep: 1 })
const report = createReport('kill -9 of Portreeve at every step, with an app probed 20 times a second')
const sweep = createSweep(report)
const { bothSides, told, dieAt, ended, faults, recoveries } = sweep

await onStage(async (stage) => {
  const { portreeve } = stage
  const app = await stage.app('served')
  await next(app, portreeve)
  const prober = startProber(portreeve.edge_port, app.host)
  if (options.sweep === 1) {
    for (const step of DEPLOY_STEPS)
      await bothSides(`deploy.${step}`, (point) => crashDeploy(portreeve, app, point, 'deploy'))
    for (const step of DEPLOY_STEPS)
      await bothSides(`deploy.${step}`, (point) => crashDeploy(portreeve, app, point, 'rollback'))
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
    await told(`random kill ${round}`, () => crashAnytime(portreeve, app, round))
  await sweep.close(prober)
})
report.end()

/** A new commit, deployed without a crash. */
async function next(app: StagedApp, portreeve: Portreeve): Promise<void> {
  change(app)
  await deployed(portreeve, app.id)
}

/** Pushes a commit that answers something new; returns what. */
function change(app: StagedApp): string {
  const version = `${app.name} ${performance.now()}`
  app.repository.commit(nodeApp(version), version)
  return version
}

async function crashDeploy(
  portreeve: Portreeve,
  app: StagedApp,
  point: string,
  verb: 'deploy' | 'rollback',
): Promise<void> {
  const version = verb === 'deploy' ? change(app) : undefined
  if (point.includes('soak')) await portreeve.call('PUT', `/api/apps/${app.id}`, { soak_seconds: 1 })
  await dieAt(portreeve, point, () => startDeployment(portreeve, app.id, verb))
  const { body } = await portreeve.call('GET', `/api/apps/${app.id}`)
  const deployment = await portreeve.untilDeployment(body.data.latest_deployment.id)
  ended()
  if (deployment.status !== 'live')
    faults.push(
      `${verb} ${point}: the deployment is ${deployment.status}: ${JSON.stringify(deployment.error)}`,
    )
  await judge(portreeve, app, `${verb} ${point}`, version)
}

async function judge(
  portreeve: Portreeve,
  app: StagedApp,
  what: string,
  version: string | undefined,
): Promise<void> {
  let last: string[] = []
  await eventually(
    'Everything being cleared',
    async () => {
      last = await leftovers(portreeve, app.id)
      return last.length === 0 ? true : undefined
    },
    SETTLE_MS,
  ).catch(() => faults.push(`${what}: ${last.join('; ')}`))
  const { body } = await portreeve.visit(app.host)
  if (version !== undefined && body !== version)
    faults.push(`${what}: «${body}» serves instead of «${version}»`)
}

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

/** Kills at a random time after the deployment was accepted. */
async function crashAnytime(portreeve: Portreeve, app: StagedApp, round: number): Promise<void> {
  const version = change(app)
  const id = await startDeployment(portreeve, app.id)
  const after_ms = Math.round(Math.random() * RANDOM_WINDOW_MS)
  await delay(after_ms)
  await portreeve.kill()
  recoveries.push(-performance.now())
  await portreeve.start()
  const deployment = await portreeve.untilDeployment(id)
  ended()
  const what = `random kill ${round} after ${after_ms} ms`
  if (deployment.status !== 'live')
    faults.push(`${what}: the deployment is ${deployment.status}: ${JSON.stringify(deployment.error)}`)
  await judge(portreeve, app, what, version)
}
