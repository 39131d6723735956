import type { Route } from '#server/platform/ingress/ingress'
import { startApp } from '../test/platform/ingress/app.ts'
import { ask, type Address } from '../test/platform/ingress/client.ts'
import { docker, openTestEdge } from '../test/platform/ingress/edge.ts'

const CHANGES = 40

/** From the call until a request is answered as the change wants it, with few and with many routes. */
export async function latencyReport(): Promise<string[]> {
  const lines: string[] = []
  for (const count of [10, 10_000]) lines.push(...await reportFor(count))
  return lines
}

async function reportFor(count: number): Promise<string[]> {
  const edge = await openTestEdge()
  const [a, b] = [await startApp('a'), await startApp('b')]
  const hostname = (index: number) => `app-${index}.apps.example.com`
  const routes: Route[] = Array.from({ length: count }, (_, index) => ({ id: `app_${index}`, hostnames: [hostname(index)], servers: [a.server] }))
  try {
    await edge.ingress.ensure()
    const applied = await time(() => edge.ingress.apply({ routes }))
    const switched = await times(async (turn) => {
      const next = turn % 2 === 0 ? b : a
      await edge.ingress.setRoute({ id: 'app_5', hostnames: [hostname(5)], servers: [next.server] })
      await expect(edge.edge, hostname(5), next === a ? 'a' : 'b')
    })
    const added = await times(async (turn) => {
      await edge.ingress.setRoute({ id: `new_${turn}`, hostnames: [`new-${turn}.test`], servers: [a.server] })
      await expect(edge.edge, `new-${turn}.test`, 'a')
    })
    const removed = await times(async (turn) => {
      await edge.ingress.removeRoute(`new_${turn}`)
      await expect(edge.edge, `new-${turn}.test`, undefined)
    })
    const again = await time(() => edge.ingress.apply({ routes }))
    const { memory_stats } = await docker.getContainer(edge.container.name).stats({ stream: false })
    return [
      `${count} routes: first apply ${applied.toFixed(0)} ms, apply of the same ${again.toFixed(0)} ms, memory ${Math.round(memory_stats.usage / 2 ** 20)} MiB`,
      `  live after: switch ${switched}; new route ${added}; removed ${removed}`,
    ]
  } finally {
    await edge.close()
    await Promise.all([a.kill(), b.kill()])
  }
}

async function expect(edge: Address, hostname: string, app: string | undefined): Promise<void> {
  const answer = await ask(edge, hostname)
  const found = answer.status === 200 ? answer.seen.app : undefined
  if (found !== app) throw new Error(`${hostname} is served by ${found ?? answer.status}, not by ${app ?? 'nobody'}`)
}

async function time(change: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await change()
  return performance.now() - started
}

async function times(change: (turn: number) => Promise<void>): Promise<string> {
  const took: number[] = []
  for (let turn = 0; turn < CHANGES; turn++) took.push(await time(() => change(turn)))
  took.sort((left, right) => left - right)
  return `p50 ${took[CHANGES / 2]?.toFixed(1)} ms, max ${took.at(-1)?.toFixed(1)} ms`
}
