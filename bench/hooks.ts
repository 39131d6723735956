/**
 * What a signed push of a forge costs over `POST /deploy`, until the new version serves. The two take turns.
 * `npx node bench/hooks.ts [--pairs=10]`
 */
import { createHmac } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { nodeApp } from '#test/support/portreeve'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { onStage } from './support/stage.ts'

const LIMIT_MS = 100
const LOOK_MS = 10
const GIVE_UP_MS = 120_000
const { pairs } = numberOptions({ pairs: 10 })
const report = createReport(`${pairs} pushes through a signed hook and ${pairs} POST /deploy, in turns`)

await onStage(async ({ portreeve, app: createApp }) => {
  const app = await createApp('pushed', { soak_seconds: 0 })
  const body = { kind: 'git', provider: 'github', app_id: app.id }
  const hook = (await portreeve.call('POST', '/api/webhooks', body)).body.data
  let version = 1
  const commit = () => {
    version += 1
    return app.repository.commit(nodeApp(`pushed ${version}`), `version ${version}`)
  }
  const push = async () => {
    const raw = JSON.stringify({
      ref: 'refs/heads/main',
      after: commit(),
      commits: [],
      repository: { clone_url: app.repository.url },
    })
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': `delivery-${version}`,
      'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(raw).digest('hex')}`,
    }
    return () => portreeve.call('POST', new URL(hook.url).pathname, raw, headers)
  }
  const deploy = async () => {
    commit()
    return () => portreeve.call('POST', `/api/apps/${app.id}/deploy`, {})
  }
  /** Milliseconds until the answer, and until the version serves. */
  const measure = async (prepare: () => Promise<() => Promise<{ status: number }>>) => {
    const send = await prepare()
    const begun = performance.now()
    const { status } = await send()
    if (status > 201) throw new Error(`The request was answered ${status}.`)
    const answered = performance.now() - begun
    while ((await portreeve.visit(app.host)).body !== `pushed ${version}`) {
      if (performance.now() - begun > GIVE_UP_MS) throw new Error(`Version ${version} never served.`)
      await delay(LOOK_MS)
    }
    const live = performance.now() - begun
    // The next one does not wait for the end of this one.
    const { body } = await portreeve.call('GET', `/api/apps/${app.id}/deployments`)
    await portreeve.untilDeployment(body.data[0].id)
    return { answered, live }
  }
  const pushed: { answered: number; live: number }[] = []
  const asked: typeof pushed = []
  await measure(deploy)
  for (let pair = 0; pair < pairs; pair += 1) {
    const order = pair % 2 === 0 ? [push, deploy] : [deploy, push]
    for (const way of order) (way === push ? pushed : asked).push(await measure(way))
  }
  const middle = (all: typeof pushed, what: 'answered' | 'live') => median(all.map((one) => one[what]))
  report.figure(
    'POST /deploy: answered, live (medians)',
    `${ms(middle(asked, 'answered'))}, ${ms(middle(asked, 'live'))}`,
  )
  report.figure(
    'signed push: answered, live (medians)',
    `${ms(middle(pushed, 'answered'))}, ${ms(middle(pushed, 'live'))}`,
  )
  const differences = pushed.map(({ live }, pair) => live - asked[pair]!.live)
  report.check(
    `a push costs at most ${LIMIT_MS} ms over POST /deploy (median of pairs)`,
    median(differences) <= LIMIT_MS,
    ms(median(differences)),
  )
})
report.end()
