/**
 * The container engine is killed with -9 while Portreeve builds and while it starts a release, on an engine
 * of the experiment's own (root, `dockerd` with live-restore). Reads answer on, what needs the engine says so
 * at once, apps serve throughout, and everything recovers by itself. `npx node bench/engine-crash.ts`
 */
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, nodeApp, type Portreeve } from '#test/support/portreeve'
import { leftovers } from './support/leftovers.ts'
import { createOwnEngine, inOwnNetwork } from './support/own-engine.ts'
import { startProber } from '#test/support/probe'
import { createReport, ms } from './support/report.ts'
import { onStage, type StagedApp, startDeployment } from './support/stage.ts'

const ANSWER_LIMIT_MS = 1000
const RECOVERY_LIMIT_MS = 30_000
const DOWN_MS = 4000
/** Long enough to be caught in the middle. */
const DOCKERFILE =
  'FROM node:22-slim\nWORKDIR /app\nCOPY . .\nRUN sleep 4\nENV PORT=3000\nEXPOSE 3000\nCMD ["node", "server.js"]\n'

inOwnNetwork()
if (process.env.BENCH_OWN_NETWORK === '1') await experiment()

async function experiment(): Promise<void> {
  const report = createReport('kill -9 of the container engine during a build and during a start')
  const engine = await createOwnEngine()
  await engine.start()
  try {
    engine.load('node:22-slim', 'haproxy:3.0-trixie')
    process.env.DOCKER_HOST = engine.host
    await onStage(async (stage) => {
      const app = await stage.app('served', {}, { Dockerfile: DOCKERFILE })
      const prober = startProber(stage.portreeve.edge_port, app.host)
      for (const step of ['build', 'start'] as const) await killDuring(stage.portreeve, app, step)
      await prober.stop()
      report.figure('probes', prober.sent())
      report.check(
        'failed probes: 0',
        prober.failures().length === 0,
        `${prober.failures().length} ${JSON.stringify(prober.failures().slice(0, 5))}`,
      )
    })
  } finally {
    await engine.close()
  }
  report.end()

  async function killDuring(portreeve: Portreeve, app: StagedApp, step: 'build' | 'start'): Promise<void> {
    const version = `${app.name} ${step}`
    app.repository.commit({ ...nodeApp(version), Dockerfile: DOCKERFILE }, version)
    const id = await startDeployment(portreeve, app.id)
    await eventually(`The step ${step}`, async () => {
      const { body } = await portreeve.call('GET', `/api/deployments/${id}`)
      return (body.data.steps as { name: string; status: string }[]).some(
        ({ name, status }) => name === step && status === 'running',
      )
        ? true
        : undefined
    })
    if (step === 'build') await delay(1500)
    await engine.kill()
    const asked = await Promise.all([
      timed(() => portreeve.call('GET', `/api/apps/${app.id}`)),
      timed(() => portreeve.call('GET', '/api/deployments')),
      timed(() => portreeve.call('GET', `/api/deployments/${id}/logs`)),
      timed(() => portreeve.call('POST', `/api/apps/${app.id}/restart`)),
      timed(() => portreeve.call('GET', `/api/apps/${app.id}/instances`)),
    ])
    const statuses = asked.map(
      ({ answer }) => `${answer.status}${answer.body.error ? ` ${answer.body.error.code}` : ''}`,
    )
    const slowest = Math.max(...asked.map(({ took_ms }) => took_ms))
    report.check(
      `${step}: reads answer 200, engine verbs 503`,
      statuses.join() === '200,200,200,503 ENGINE_UNAVAILABLE,503 ENGINE_UNAVAILABLE',
      statuses.join(', '),
    )
    report.check(`${step}: every answer below ${ANSWER_LIMIT_MS} ms`, slowest < ANSWER_LIMIT_MS, ms(slowest))
    await delay(DOWN_MS)
    await engine.start()
    const back_at = performance.now()
    await portreeve.untilDeployment(id)
    const { body } = await portreeve.call('GET', `/api/deployments/${id}`)
    const recovered_ms = performance.now() - back_at
    report.check(
      `${step}: the deployment is live within ${RECOVERY_LIMIT_MS / 1000} s of the engine's return`,
      body.data.status === 'live' && recovered_ms < RECOVERY_LIMIT_MS,
      `${body.data.status} after ${ms(recovered_ms)} ${body.data.error ? JSON.stringify(body.data.error) : ''}`,
    )
    let left: string[] = []
    await eventually(
      'Everything being cleared',
      async () => {
        left = await leftovers(portreeve, app.id)
        return left.length === 0 ? true : undefined
      },
      RECOVERY_LIMIT_MS,
    ).catch(() => undefined)
    report.check(
      `${step}: exactly one release is left`,
      left.length === 0,
      left.length === 0 ? 'yes' : left.join('; '),
    )
    report.check(
      `${step}: the new version serves`,
      (await portreeve.visit(app.host)).body === version,
      (await portreeve.visit(app.host)).body,
    )
  }
}

async function timed<T>(work: () => Promise<T>): Promise<{ took_ms: number; answer: T }> {
  const began = performance.now()
  const answer = await work()
  return { took_ms: performance.now() - began, answer }
}
