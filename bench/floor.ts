/**
 * Wall time from the request to the first answer of the new version at the edge, divided by the same steps
 * scripted by hand with git and the engine's CLI: the same Dockerfile, builder and machine, the two taking
 * turns. The soak comes after and is not in it. `npx node bench/floor.ts [--rounds=7]`
 */
import { randomBytes } from 'node:crypto'
import { get } from 'node:http'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { defaultDockerignore } from '#server/builds/dockerignore'
import type { GitRepository } from '#test/support/git-server'
import { nodeApp } from '#test/support/portreeve'
import { createByHand } from './support/by-hand.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { onStage, type Stage } from './support/stage.ts'

const LIMIT = 1.15
const WATCH_MS = 8
const RUN = randomBytes(4).toString('hex')
const options = numberOptions({ rounds: 7 })
const report = createReport(
  `Portreeve against the same steps by hand, medians of ${options.rounds} rounds each, taking turns`,
)

type Times = Record<'create' | 'changed' | 'unchanged', number[]>
const none = (): Times => ({ create: [], changed: [], unchanged: [] })
const ours = none()
const hand = none()
const steps: Record<string, Record<string, number[]>> = {}
const hand_steps: typeof steps = {}
const add = (to: typeof steps, kind: string, name: string, duration_ms: number) =>
  ((to[kind] ??= {})[name] ??= []).push(duration_ms)

/** What the edge answers for this host, by a request on a new connection. */
const answerOf = (port: number, host: string) =>
  new Promise<string>((resolve) => {
    get({ host: '127.0.0.1', port, agent: false, headers: { host } }, (response) => {
      let body = ''
      response
        .on('data', (chunk: Buffer) => {
          body += chunk.toString()
        })
        .on('end', () => resolve(response.statusCode === 200 ? body : ''))
        .on('error', () => resolve(''))
    }).on('error', () => resolve(''))
  })
async function served(port: number, host: string, version: string): Promise<void> {
  const end = performance.now() + 120_000
  while ((await answerOf(port, host)) !== version) {
    if (performance.now() > end) throw new Error(`«${version}» was not served at ${host}.`)
    await new Promise((resolve) => setTimeout(resolve, WATCH_MS))
  }
}
const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/**
 * Version of the files: package.json differs per app and per run, so that a new app finds nobody's layers,
 * not even those of an earlier run.
 */
function commit(repository: GitRepository, name: string, version: string): string {
  const text = `${name} ${version}`
  repository.commit(
    {
      ...nodeApp(text),
      'package.json': JSON.stringify({
        name: `${name}-${RUN}`,
        version: '1.0.0',
        scripts: { start: 'node server.js' },
      }),
      'README.md': text,
    },
    text,
  )
  return text
}

await onStage(async (stage) => {
  const by_hand = await createByHand(`bench-floor-${process.pid}`)
  try {
    // Once each to warm caches up; not counted.
    const plan = await ourRound(stage, 'warm', none())
    await handRound(stage, 'hand-warm', plan, none())
    for (let round = 1; round <= options.rounds; round += 1) {
      const turns = [
        () => ourRound(stage, `ours-${round}`, ours),
        () => handRound(stage, `hand-${round}`, plan, hand),
      ]
      for (const turn of round % 2 === 1 ? turns : turns.toReversed()) await turn()
    }
  } finally {
    by_hand.close()
  }

  async function ourRound({ portreeve, forge }: Stage, name: string, into: Times): Promise<Plan> {
    const repository = forge.repository(name)
    const host = `${name}.apps.test`
    let version = commit(repository, name, '1')
    let id = ''
    into.create.push(
      await timed(async () => {
        const created = await portreeve.call('POST', '/api/apps', {
          name,
          git_url: repository.url,
          branch: 'main',
          soak_seconds: 0,
        })
        if (created.status !== 201) throw new Error(JSON.stringify(created.body))
        id = created.body.data.id
        await served(portreeve.edge_port, host, version)
      }),
    )
    const first = await settled('create')
    version = commit(repository, name, '2')
    for (const kind of ['changed', 'unchanged'] as const) {
      into[kind].push(
        await timed(async () => {
          const answer = await portreeve.call('POST', `/api/apps/${id}/deploy`, {})
          if (kind === 'changed') return served(portreeve.edge_port, host, version)
          return liveAgain(answer.body.data.id)
        }),
      )
      await settled(kind)
    }
    const plan = planOf(portreeve.data_directory, first.id)
    await portreeve.call('DELETE', `/api/apps/${id}`)
    return plan

    /** Nothing to see from outside when the same version goes live again: until the deployment says so. */
    async function liveAgain(deployment_id: string): Promise<void> {
      while (!(await portreeve.call('GET', `/api/deployments/${deployment_id}`)).body.data.live_at)
        await new Promise((resolve) => setTimeout(resolve, WATCH_MS))
    }
    async function settled(kind: string): Promise<any> {
      const app = (await portreeve.call('GET', `/api/apps/${id}`)).body.data
      const ended = await portreeve.untilDeployment(app.latest_deployment.id)
      if (ended.status !== 'live') throw new Error(JSON.stringify(ended.error))
      if (into === ours) for (const step of ended.steps) add(steps, kind, step.name, step.duration_ms ?? 0)
      return ended
    }
  }

  async function handRound(
    { forge }: Stage,
    name: string,
    { dockerfile, port }: Plan,
    into: Times,
  ): Promise<void> {
    const repository = forge.repository(name)
    let version = commit(repository, name, '1')
    for (const kind of ['create', 'changed', 'unchanged'] as const) {
      if (kind === 'changed') version = commit(repository, name, '2')
      into[kind].push(
        await timed(async () => {
          // Watched from the first moment, as ours is: the requests take their share of the machine.
          const [laps] = await Promise.all([
            by_hand.deploy(repository.url, dockerfile, defaultDockerignore(), port),
            served(by_hand.edge_port, 'any.test', version),
          ])
          if (into === hand)
            for (const [name, duration_ms] of Object.entries(laps)) add(hand_steps, kind, name, duration_ms)
        }),
      )
      by_hand.retire()
    }
  }
})

interface Plan {
  dockerfile: string
  port: number
}

/** The Dockerfile that Portreeve made; the API shows the plan without its text. */
function planOf(data_directory: string, deployment_id: string): Plan {
  const db = new Database(join(data_directory, 'portreeve.db'), { readonly: true })
  try {
    return JSON.parse(
      db.prepare('SELECT plan FROM deployments WHERE id = ?').pluck().get(deployment_id) as string,
    ) as Plan
  } finally {
    db.close()
  }
}

for (const [kind, title] of [
  ['create', 'create to live'],
  ['changed', 'redeploy, one file changed'],
  ['unchanged', 'redeploy, nothing changed (no build)'],
] as const) {
  const [mine, theirs] = [median(ours[kind]), median(hand[kind])]
  report.figure(`${title}: Portreeve / by hand`, `${ms(mine)} / ${ms(theirs)}`)
  for (const [whose, of] of [
    ['steps', steps],
    ['steps by hand', hand_steps],
  ] as const) {
    report.figure(
      `  ${whose}`,
      Object.entries(of[kind] ?? {})
        .map(([name, times]) => `${name} ${Math.round(median(times))}`)
        .join(', '),
    )
  }
  report.check(`${title}: ratio at most ${LIMIT}`, mine / theirs <= LIMIT, (mine / theirs).toFixed(2))
}
report.end()
