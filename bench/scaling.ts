/**
 * Scaling of a running app, and waking of one that sleeps, through the real engine and edge.
 * `npx node bench/scaling.ts [--rounds=5] [--wakes=10]`
 */
import { setTimeout as delay } from 'node:timers/promises'
import { docker, eventually } from '#test/support/portreeve'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { onStage } from './support/stage.ts'
import { runLoad } from './support/strict-client.ts'

const CONNECTIONS = 20
const HELD = 100
const options = numberOptions({ rounds: 5, wakes: 10 })
const report = createReport('Scaling of one app of Node, with a load on it; and waking it')

await onStage(async ({ portreeve, app: stageApp }) => {
  const app = await stageApp('elastic')
  const put = (body: unknown) => portreeve.call('PUT', `/api/apps/${app.id}/scaling`, body)
  const scaling = async () => (await portreeve.call('GET', `/api/apps/${app.id}/scaling`)).body.data
  /** Time until so many instances get requests, and nothing else is under way. */
  const scaled = async (replicas: number): Promise<number> => {
    const began = performance.now()
    await put({ replicas })
    await eventually(`${replicas} instances`, async () => {
      const { running, status, instances } = await scaling()
      const ready = instances.filter((one: { receives_requests: boolean }) => one.receives_requests)
      return running === replicas && ready.length === replicas && status !== 'scaling' ? true : undefined
    })
    return performance.now() - began
  }

  const more: number[] = []
  for (let round = 0; round < options.rounds; round += 1) {
    more.push(await scaled(2))
    await scaled(1)
  }
  report.check(
    'one more replica gets requests within 2 s (median)',
    median(more) < 2000,
    `${ms(median(more))}, slowest ${ms(Math.max(...more))}`,
  )

  const over = Promise.withResolvers<void>()
  const load = runLoad({
    host: '127.0.0.1',
    port: portreeve.edge_port,
    host_header: app.host,
    connections: CONNECTIONS,
    until: over.promise,
  })
  const ways: number[] = []
  for (let round = 0; round < options.rounds; round += 1) {
    ways.push(await scaled(5))
    ways.push(await scaled(1))
  }
  over.resolve()
  const { failed, failed_total, sent } = await load
  report.figure('1 to 5 and back under load, each way (median)', ms(median(ways)))
  report.check(
    `failed requests of ${sent} while scaling 1, 5, 1: 0`,
    failed_total === 0,
    `${failed_total} ${JSON.stringify(failed)}`,
  )

  /** What the container takes by itself: created, started, and its first answer, without Portreeve. */
  const [container] = docker('ps', '-q', '--filter', `label=portreeve.app=${app.id}`).split('\n')
  const inspected = docker(
    'inspect',
    '-f',
    '{{.Image}} {{.HostConfig.NetworkMode}} {{range .Config.Env}}{{println .}}{{end}}',
    container!,
  ).split(/\s+/)
  const [image, network] = inspected
  const port = inspected.find((word) => word.startsWith('PORT='))!.slice(5)
  const alone: number[] = []
  for (let round = 0; round < options.wakes; round += 1) {
    const began = performance.now()
    const name = `bench-alone-${process.pid}-${round}`
    docker('run', '-d', '--init', '--name', name, '--network', network!, '-e', `PORT=${port}`, image!)
    const address = docker('inspect', '-f', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', name)
    await eventually('The container answering', async () =>
      (await fetch(`http://${address}:${port}/`).catch(() => undefined))?.ok ? true : undefined,
    )
    alone.push(performance.now() - began)
    docker('rm', '-f', name)
  }
  const wakes: number[] = []
  for (let round = 0; round < options.wakes; round += 1) {
    await scaled(0)
    await delay(200)
    const began = performance.now()
    const { status } = await portreeve.visit(app.host)
    if (status === 200) wakes.push(performance.now() - began)
    await eventually('The app being awake', async () =>
      (await scaling()).status === 'steady' ? true : undefined,
    )
  }
  const [own, woken] = [median(alone), median(wakes)]
  report.figure('the container alone, from `docker run` to its first answer', ms(own))
  report.check(
    'wake on request: first answer at most 300 ms after that (median)',
    wakes.length === options.wakes && woken < own + 300,
    `${ms(woken)}, slowest ${ms(Math.max(...wakes))}, ${wakes.length} of ${options.wakes} answered 200`,
  )

  await scaled(0)
  const began = performance.now()
  const held = await Promise.all(
    Array.from({ length: HELD }, () =>
      portreeve.visit(app.host).then(
        ({ status }) => status,
        () => 0,
      ),
    ),
  )
  const lost = held.filter((status) => status !== 200).length
  report.check(
    `lost of ${HELD} requests that were held: 0`,
    lost === 0,
    `${lost}, all answered after ${ms(performance.now() - began)}`,
  )
})
report.end()
