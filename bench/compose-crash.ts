/**
 * Portreeve is killed with -9 before and after every step of a deployment and of a rollback of a stack: a web that
 * is built, a worker that does not change, and a database with a volume that is replaced stop-first. The web is
 * probed 20 times a second. `npx node bench/compose-crash.ts [--random=5] [--sweep=1]`
 */
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { docker } from '#test/support/portreeve'
import { createDeployCrashes } from './support/deploy-crashes.ts'
import { startProber } from '#test/support/probe'
import { createReport, numberOptions } from './support/report.ts'
import { deployed, onStage, type Stage, type StagedApp } from './support/stage.ts'
import { createSweep } from './support/sweep.ts'

const STEPS = ['clone', 'detect', 'build', 'release', 'start', 'verify', 'switch', 'soak', 'retire']
const SERVICES = 3
const RANDOM_WINDOW_MS = 6000
/** Time for what follows a job, such as the removal of what nobody owns. */
const SETTLE_MS = 30_000
const options = numberOptions({ random: 5, sweep: 1 })
const report = createReport(
  'kill -9 of Portreeve at every step of a stack, with its web probed 20 times a second',
)
const sweep = createSweep(report)
const { bothSides, told } = sweep

const filesOf = (version: string) => ({
  'compose.yaml': `
x-base: &base { image: "${BUSYBOX_IMAGE}", stop_grace_period: 1s }
services:
  web: { build: ., ports: ["8080"], stop_grace_period: 5s }
  worker: { <<: *base, command: ["sh", "-c", "while true; do sleep 1; done"] }
  db:
    <<: *base
    command: ["sh", "-c", "echo started >> /data/starts; exec httpd -f -p 9000 -h /data"]
    environment: { VERSION: "${version}" }
    volumes: ["data:/data"]
volumes: { data: }
`,
  Dockerfile: `FROM ${BUSYBOX_IMAGE}
RUN mkdir -p /www && echo "${version}" > /www/index.html
CMD ["httpd", "-f", "-p", "8080", "-h", "/www"]
`,
})

await ensureBusyboxImage()
await onStage(async (stage) => {
  const { portreeve } = stage
  const app = await createStack(stage)
  const crashes = createDeployCrashes({
    ...{ portreeve, sweep, app, filesOf, services: SERVICES },
    ...{ window_ms: RANDOM_WINDOW_MS, settle_ms: SETTLE_MS },
    alsoWrong(served) {
      const told_by_db = versionOfDatabase(app)
      return served === told_by_db ? [] : [`the web is «${served}», the database «${told_by_db}»`]
    },
  })
  crashes.change()
  await deployed(portreeve, app.id)
  const worker = containerOf(app, 'worker')
  const prober = startProber(portreeve.edge_port, app.host)
  if (options.sweep === 1)
    for (const verb of ['deploy', 'rollback'] as const)
      for (const step of STEPS) await bothSides(`deploy.${step}`, (point) => crashes.at(point, verb))
  for (let round = 1; round <= options.random; round += 1)
    await told(`random kill ${round}`, () => crashes.anytime(round))
  await sweep.close(prober)
  report.check(
    'the worker, which never changed, was not touched',
    containerOf(app, 'worker') === worker && worker !== '',
    worker,
  )
})
report.end()

async function createStack({ portreeve, forge }: Stage): Promise<StagedApp> {
  const name = 'stack'
  const repository = forge.repository(name)
  repository.commit(filesOf(`${name} 1`), 'version 1')
  const { body } = await portreeve.call('POST', '/api/apps', {
    name,
    git_url: repository.url,
    branch: 'main',
    source: 'compose',
    soak_seconds: 1,
  })
  const first = await portreeve.untilDeployment(body.data.latest_deployment.id)
  if (first.status !== 'live') throw new Error(`The first deployment: ${JSON.stringify(first.error)}`)
  return { id: body.data.id, name, host: `${name}.apps.test`, repository }
}

function containerOf({ id }: StagedApp, service: string): string {
  const labels = [`portreeve.app=${id}`, `portreeve.process=${service}`]
  return docker('ps', '-q', ...labels.flatMap((label) => ['--filter', `label=${label}`]))
}

/** The version that the container of the database was started with. */
function versionOfDatabase(app: StagedApp): string | undefined {
  const variables = docker(
    'inspect',
    '-f',
    '{{range .Config.Env}}{{println .}}{{end}}',
    containerOf(app, 'db'),
  )
  return /^VERSION=(.*)$/m.exec(variables)?.[1]
}
