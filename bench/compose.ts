/**
 * A stack of a web, a worker and a database, of which the web changes with every deployment, under load: nothing
 * may be lost, and the others may not be touched.
 * `npx node bench/compose.ts [--deploys=20] [--soak=1] [--connections=50]`
 */
import { setTimeout as delay } from 'node:timers/promises'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { docker, startPortreeve } from '#test/support/portreeve'
import { createReport, ms, numberOptions } from './support/report.ts'
import { judgeLoad, percentile, runLoad } from './support/strict-client.ts'

const QUIET_MS = 3000
const HOST = 'stack.apps.test'
const options = numberOptions({ deploys: 20, soak: 1, connections: 50 })
const report = createReport(
  `${options.deploys} deployments of a stack (soak ${options.soak} s) under ${options.connections} keep-alive connections at full speed`,
)
/** BusyBox ends a connection after each answer, which the edge keeps from its clients. */
const stackOf = (version: number) => `
x-base: &base { image: "${BUSYBOX_IMAGE}", stop_grace_period: 5s }
services:
  web:
    <<: *base
    command: ["sh", "-c", "mkdir -p /www && echo version ${version} > /www/index.html && exec httpd -f -p 8080 -h /www"]
    ports: ["8080"]
    depends_on: [db]
  worker: { <<: *base, command: ["sh", "-c", "while true; do sleep 1; done"] }
  db:
    <<: *base
    command: ["sh", "-c", "exec httpd -f -p 9000 -h /data"]
    volumes: ["data:/data"]
volumes: { data: }
`

await ensureBusyboxImage()
const portreeve = await startPortreeve()
try {
  const created = await portreeve.call('POST', '/api/apps', {
    name: 'stack',
    compose: stackOf(1),
    soak_seconds: options.soak,
  })
  const { id, latest_deployment } = created.body.data
  const finished = async (deployment: string) => {
    const { status, error } = await portreeve.untilDeployment(deployment)
    if (status !== 'live') throw new Error(`The deployment is ${status}: ${JSON.stringify(error)}`)
  }
  await finished(latest_deployment.id)
  const ids = (service: string) =>
    docker(
      'ps',
      '-q',
      '--filter',
      `label=portreeve.app=${id}`,
      '--filter',
      `label=portreeve.process=${service}`,
    )
  const before = [ids('worker'), ids('db')]
  const over = Promise.withResolvers<void>()
  let last = ''
  const load = runLoad({
    host: '127.0.0.1',
    port: portreeve.edge_port,
    host_header: HOST,
    connections: options.connections,
    until: over.promise,
    observe: ({ body }) => {
      last = body
    },
  })
  const wrong: string[] = []
  try {
    await delay(QUIET_MS)
    for (let version = 2; version <= options.deploys + 1; version += 1) {
      await portreeve.call('PUT', `/api/apps/${id}`, { compose: stackOf(version) })
      const asked = await portreeve.call('POST', `/api/apps/${id}/deploy`, {})
      await finished(asked.body.data.id)
      await delay(100)
      if (last.trim() !== `version ${version}`) wrong.push(`«${last.trim()}» instead of ${version}`)
    }
    await delay(QUIET_MS)
  } finally {
    over.resolve()
  }
  const result = await load
  const always = () => true
  report.figure('requests sent', result.sent)
  report.figure('requests a second', Math.round(result.sent / (result.duration_ms / 1000)))
  report.figure(
    'p50 / p99',
    `${ms(percentile(result.latencies, 0.5, always))} / ${ms(percentile(result.latencies, 0.99, always))}`,
  )
  judgeLoad(report, result, wrong)
  const after = [ids('worker'), ids('db')]
  report.check(
    'worker and database were not touched',
    after.join() === before.join() && !before.includes(''),
    after.join(' '),
  )
} finally {
  await portreeve.dispose()
}
report.end()
