/**
 * Many at once: 50 parallel deployments of one app with cancels at random, 200 parallel creations of one
 * name, and how long a creation takes. `npx node bench/concurrency.ts [--deploys=50] [--creates=200]`
 */
import { setTimeout as delay } from 'node:timers/promises'
import { docker, eventually, nodeApp } from '#test/support/portreeve'
import { leftovers } from './support/leftovers.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { onStage } from './support/stage.ts'

const CREATE_LIMIT_MS = 100
const SAMPLES = 15
const options = numberOptions({ deploys: 50, creates: 200 })
const report = createReport('Many requests at once')

await onStage(async (stage) => {
  const { portreeve, forge } = stage
  const app = await stage.app('busy')
  app.repository.commit(nodeApp('newest'), 'newest')
  const began = performance.now()
  const accepted: string[] = []
  let refused = 0
  let cancelled = 0
  const cancelling: Promise<void>[] = []
  await Promise.all(
    Array.from({ length: options.deploys }, async (_, n) => {
      await delay(Math.random() * 4000)
      const answer = await portreeve.call(
        'POST',
        `/api/apps/${app.id}/deploy`,
        n % 3 === 0 ? { no_cache: true } : {},
      )
      if (answer.status !== 201) return void (refused += 1)
      accepted.push(answer.body.data.id)
      if (Math.random() < 0.4) {
        cancelling.push(
          (async () => {
            await delay(Math.random() * 2000)
            if (
              (await portreeve.call('POST', `/api/deployments/${answer.body.data.id}/cancel`)).status === 200
            )
              cancelled += 1
          })(),
        )
      }
    }),
  )
  await Promise.all(cancelling)
  const last = await portreeve.call('POST', `/api/apps/${app.id}/deploy`, {})
  accepted.push(last.body.data.id)
  const newest = await portreeve.untilDeployment(last.body.data.id)
  const history = await eventually(
    'Every deployment ending',
    async () => {
      const rows = (await portreeve.call('GET', `/api/apps/${app.id}/deployments?per_page=100`)).body
        .data as {
        status: string
        finished_at: string | null
      }[]
      return rows.every((row) => row.finished_at) ? rows : undefined
    },
    180_000,
  )
  const counts = Object.entries(Object.groupBy(history, (row) => row.status))
    .map(([status, rows]) => `${rows!.length} ${status}`)
    .join(', ')
  report.figure(
    'deployments',
    `${accepted.length} accepted, ${refused} refused, ${cancelled} cancels accepted: ${counts}, all ended in ${((performance.now() - began) / 1000).toFixed(1)} s`,
  )
  report.check('every deployment is accepted', refused === 0, String(accepted.length))
  const live = (await portreeve.call('GET', `/api/apps/${app.id}`)).body.data.live_deployment_id
  report.check(
    'the newest is live',
    newest.status === 'live' && live === newest.id && (await portreeve.visit(app.host)).body === 'newest',
    newest.status,
  )
  let left: string[] = ['not looked']
  await eventually(
    'Everything being cleared',
    async () => {
      left = await leftovers(portreeve, app.id)
      return left.length === 0 ? true : undefined
    },
    15_000,
  ).catch(() => undefined)
  report.check(
    'exactly one release is left, with its images only',
    left.length === 0,
    left.length === 0 ? 'yes' : left.join('; '),
  )

  const took: number[] = []
  const made: string[] = []
  for (let n = 0; n < SAMPLES; n += 1) {
    const repository = forge.repository(`quick-${n}`)
    repository.commit(nodeApp('quick'))
    const start = performance.now()
    const answer = await portreeve.call('POST', '/api/apps', {
      name: `quick-${n}`,
      git_url: repository.url,
      branch: 'main',
      soak_seconds: 0,
    })
    took.push(performance.now() - start)
    made.push(answer.body.data.id)
  }
  report.check(
    `POST /api/apps below ${CREATE_LIMIT_MS} ms (median of ${SAMPLES}, while earlier ones build)`,
    median(took) < CREATE_LIMIT_MS,
    `${ms(median(took))} (slowest ${ms(Math.max(...took))})`,
  )
  for (const id of made) await portreeve.call('DELETE', `/api/apps/${id}`)

  const repository = forge.repository('race')
  repository.commit(nodeApp('race'))
  const answers = await Promise.all(
    Array.from({ length: options.creates }, () =>
      portreeve.call('POST', '/api/apps', {
        name: 'race',
        git_url: repository.url,
        branch: 'main',
        soak_seconds: 0,
      }),
    ),
  )
  const statuses = Object.entries(Object.groupBy(answers, ({ status }) => String(status)))
    .map(([status, all]) => `${all!.length} x ${status}`)
    .join(', ')
  const won = answers.filter(({ status }) => status === 201)
  report.check(
    `${options.creates} creations of one name: one 201, the others 409`,
    won.length === 1 && answers.filter(({ status }) => status === 409).length === options.creates - 1,
    statuses,
  )
  await portreeve.untilApp(won[0]!.body.data.id, 'running')
  await eventually(
    'The deleted apps being gone',
    async () => ((await portreeve.call('GET', '/api/apps')).body.total === 2 ? true : undefined),
    120_000,
  )
  for (const id of made)
    if (docker('ps', '-aq', '--filter', `label=portreeve.app=${id}`) !== '')
      throw new Error(`Containers of the deleted app ${id} are left.`)
})
report.end()
