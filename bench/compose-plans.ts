/**
 * A plan of a compose file with 20 services, and the list of all templates, over HTTP at the built server; and
 * what templates hold of memory when nobody looks at them. The median and the lowest tenth of the round trips are
 * printed; as in `lists.ts` the limits are about the latter, since what is above it on a shared machine is others'
 * work. `npx node --expose-gc bench/compose-plans.ts [--requests=50]`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createShelf } from '#server/templates/shelf'
import { readTemplates } from '../scripts/read-templates.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { type Server, spawnServer } from './support/server.ts'

const PLAN_LIMIT_MS = 50
const LIST_LIMIT_MS = 5
const SERVICES = 20
const WARM_UP = 5
/** What a collection of garbage leaves differs by this much from one to the next. */
const NOISE_BYTES = 256 * 1024
const options = numberOptions({ requests: 50 })
const report = createReport(`Plans of ${SERVICES} services and lists of templates, ${options.requests} each`)

/** A stack with what stacks have: variables, checks, dependencies, volumes, limits and shared parts. */
const stack = `x-base: &base { restart: always, logging: { driver: json-file } }
services:
${Array.from(
  { length: SERVICES },
  (_, index) => `  service-${index}:
    <<: *base
    image: "acme/service:\${TAG:-${index}.1}"
    environment: { PORT: "8080", NAME: "service-${index}", PEER: "\${PEER_${index}:-http://service-0:8080}" }
    ports: ["\${PORT_${index}:-${8000 + index}}:8080"]
    ${index === 0 ? '' : `depends_on: { service-${index - 1}: { condition: service_healthy } }`}
    healthcheck: { test: ["CMD", "wget", "-qO-", "http://127.0.0.1:8080/"], interval: 5s, retries: 5 }
    volumes: ["data-${index}:/data"]
    deploy: { resources: { limits: { cpus: "0.5", memory: 128M } } }
`,
).join('')}volumes:
${Array.from({ length: SERVICES }, (_, index) => `  data-${index}:\n`).join('')}`

const data_directory = mkdtempSync(join(tmpdir(), 'ptr-plans-'))
try {
  const server = await spawnServer(data_directory, { DOCKER_HOST: 'unix:///nonexistent/docker.sock' })
  try {
    await server.firstAnswer('/healthz')
    await measure(server, await server.login())
  } finally {
    await server.stop()
  }
} finally {
  rmSync(data_directory, { recursive: true, force: true })
}
await keepsNothing()
report.end()

async function measure(server: Server, token: string): Promise<void> {
  const asked = async (path: string, body?: object): Promise<{ ms: number; body: any }> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const began = performance.now()
    const answer = await fetch(`${server.url}${path}`, {
      headers,
      ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    })
    const got: any = await answer.json()
    const took = performance.now() - began
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(got)}`)
    return { ms: took, body: got }
  }
  const times = async (path: string, body?: object) => {
    const first = await asked(path, body)
    for (let round = 0; round < WARM_UP; round += 1) await asked(path, body)
    const all: number[] = []
    for (let round = 0; round < options.requests; round += 1) all.push((await asked(path, body)).ms)
    all.sort((a, b) => a - b)
    const lowest = all[Math.floor(all.length / 10)]!
    return { first: first.ms, middle: median(all), lowest, body: first.body }
  }
  const told = ({ first, middle, lowest }: Awaited<ReturnType<typeof times>>) =>
    `median ${ms(middle)}, lowest tenth ${ms(lowest)}, the very first ${ms(first)}`

  const plan = await times('/api/apps/detect', { compose: stack })
  const planned = plan.body.data.compose.services.length
  report.check(
    `a plan of ${planned} services below ${PLAN_LIMIT_MS} ms`,
    plan.lowest < PLAN_LIMIT_MS,
    told(plan),
  )
  const page = await times('/api/templates?per_page=100')
  const { total } = page.body
  report.check(
    `a page of 100 of ${total} templates below ${LIST_LIMIT_MS} ms`,
    page.lowest < LIST_LIMIT_MS,
    told(page),
  )
  const found = await times('/api/templates?q=postgres&per_page=100')
  report.figure(`a search in ${total} templates`, told(found))
}

/** Templates that were listed are forgotten with the next collection of garbage. */
async function keepsNothing(): Promise<void> {
  const { gc } = globalThis
  if (!gc) throw new Error('Start it with --expose-gc.')
  const used = async () => {
    await delay(10)
    gc()
    return process.memoryUsage().heapUsed
  }
  const shelf = createShelf(async () => readTemplates(resolve(import.meta.dirname, '..')))
  // The parser itself is loaded and compiled by the first one.
  await shelf.all()
  const idle = await used()
  let listed: unknown = await shelf.all()
  const held = (await used()) - idle
  listed = undefined
  const left = (await used()) - idle
  report.figure('templates hold while somebody looks', `${Math.round(held / 1024)} KiB`)
  report.check(
    `templates hold afterwards below ${NOISE_BYTES / 1024} KiB`,
    left < NOISE_BYTES && listed === undefined,
    `${Math.round(left / 1024)} KiB`,
  )
}
