/**
 * A rule of auto-scaling under a real step of load: how soon the right number of instances serves, what happens
 * while the load stays as it is, and how it ends. `npx node bench/autoscaling.ts [--rate=60] [--hold_s=60]`
 */
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '#test/support/portreeve'
import { startProber } from '#test/support/probe'
import { createReport, ms, numberOptions } from './support/report.ts'
import { onStage } from './support/stage.ts'

/** A period of the rule; the step may fall anywhere in one, which is then measured as half loaded. */
const PERIOD_MS = 10_000
const PERIODS = 2
const TARGET = 20
const DOWN_COOLDOWN_S = 20
const options = numberOptions({ rate: 60, hold_s: 60 })
const right = Math.ceil(options.rate / TARGET)
const report = createReport(
  `From 0 to ${options.rate} requests per second, with ${TARGET} for each instance: ${right} are right`,
)

await onStage(async ({ portreeve, app: stageApp }) => {
  const app = await stageApp('stepped')
  const scaling = async () => (await portreeve.call('GET', `/api/apps/${app.id}/scaling`)).body.data
  const rule = { metric: 'requests_per_second', target: TARGET, min: 1, max: 8 }
  const cooldowns = { scale_up_cooldown_s: 0, scale_down_cooldown_s: DOWN_COOLDOWN_S }
  const put = await portreeve.call('PUT', `/api/apps/${app.id}/scaling/auto`, { ...rule, ...cooldowns })
  if (put.status !== 200) throw new Error(JSON.stringify(put.body))
  const untilRunning = (count: number) =>
    eventually(`${count} instances`, async () => {
      const { running, status } = await scaling()
      return running === count && status === 'steady' ? true : undefined
    })
  await delay(PERIOD_MS)

  const began = performance.now()
  const load = startProber(portreeve.edge_port, app.host, 1000 / options.rate)
  await untilRunning(right)
  const took = performance.now() - began
  const up = (await scaling()).decisions
  report.figure('decisions on the way', up.map(({ detail }: any) => detail).join(' | '))
  report.check(
    `${right} instances within ${PERIODS} whole periods, and the one in which the load came`,
    took < (PERIODS + 1) * PERIOD_MS,
    ms(took),
  )
  await delay(options.hold_s * 1000)
  const held = await scaling()
  report.check(
    `decisions in ${options.hold_s} s of the same load: 0`,
    held.decisions.length === up.length && held.running === right,
    `${held.decisions.length - up.length}, ${held.running} run`,
  )
  await load.stop()
  const over = performance.now()
  await untilRunning(1)
  const { decisions } = await scaling()
  const down = decisions.slice(0, decisions.length - up.length)
  // The period in which the load ended was half loaded, and may ask for a step of its own.
  report.check(
    'afterwards only down, in at most 2 steps',
    down.length <= 2 && down.every(({ from, to }: { from: number; to: number }) => to < from),
    `${down.length}, ${ms(performance.now() - over)} after the end`,
  )
  report.check(
    `failed requests of ${load.sent()}: 0`,
    load.failures().length === 0,
    JSON.stringify(load.failures().slice(0, 3)),
  )
})
report.end()
