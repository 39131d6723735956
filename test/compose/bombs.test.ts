import { afterAll, beforeAll, expect, it } from 'vitest'
import { ComposeError, parseCompose } from '#server/compose/parse'
import { createTestApi, type TestApi } from '#test/support/api'

const WEB = 'services: {web: {image: a}}\n'
const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i))
const WIDE = `x-wide: &wide\n${lines(2300, (i) => `  K${i}: v`).join('\n')}`
/** Lists of `width` aliases of the list before: `width` to the power of `levels` values. */
const laughs = (levels: number, width: number) =>
  [
    `x-0: &a0 [${lines(width, () => 'ha').join(', ')}]`,
    ...lines(levels, (i) => `x-${i + 1}: &a${i + 1} [${lines(width, () => `*a${i}`).join(', ')}]`),
    WEB,
  ].join('\n')
/** As many as a file may have, in lines that are as long as they may be. */
const dense = (unit: string) => `${WEB}x-a: ${`${unit.repeat(16_000 / unit.length)}\n  `.repeat(15)}`

const BOMBS: [what: string, compose: string, message: RegExp][] = [
  ['a billion laughs', laughs(9, 10), /values/],
  ['few aliases of much', laughs(30, 3), /values/],
  ['aliases that double', laughs(90, 2), /values/],
  [
    'a mapping that sixty services merge',
    `${WIDE}\nservices:\n${lines(60, (i) => `  s${i}: {image: a, environment: {<<: *wide}}`).join('\n')}`,
    /values/,
  ],
  ['open brackets', `${WEB}x-a: ${'['.repeat(100_000)}`, /levels/],
  ['mappings within mappings', dense('a: '), /levels/],
  ['tags', dense('! '), /too long|too many/],
  ['quotes', dense('"'), /too long|too many/],
  ['quoted texts', dense('"" '), /too long|too many/],
  ['more than a file may be', WEB + '#\n'.repeat(150_000), /at most 262144 characters/],
  ['lines', WEB + '#\n'.repeat(100_000), /lines/],
]

let api: TestApi
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  // What the parser is made of is loaded, and compiled, once.
  await api.as('developer').post('/api/apps', { name: 'calm', compose: `${WEB}x-a: {}`, soak_seconds: 0 })
})
afterAll(() => api.close())

/** Time of the processor that the request took, whatever else the machine does meanwhile. */
async function costOf(compose: string, name = 'bomb') {
  const before = process.cpuUsage()
  const answer = await api.as('developer').post('/api/apps', { name, compose })
  const { user, system } = process.cpuUsage(before)
  return { answer, cpu_ms: (user + system) / 1000 }
}

it.each(BOMBS)('a compose file of %s is refused before it takes time', async (_, compose, message) => {
  const { answer, cpu_ms } = await costOf(compose)
  expect([answer.status, answer.body.error.code]).toEqual([422, 'VALIDATION_ERROR'])
  expect(answer.body.error.details).toEqual([{ path: 'compose', message: expect.stringMatching(message) }])
  expect(cpu_ms).toBeLessThan(400)
})

it('a long variable that one line names thousands of times is refused before it fills the memory', async () => {
  const compose = `services: {web: {image: "a", command: "${'$LONG'.repeat(3000)}"}}`
  const made = await api.as('developer').post('/api/apps', { name: 'long', compose, soak_seconds: 0 })
  const { id } = made.body.data
  const set = await api
    .as('developer')
    .post(`/api/apps/${id}/env`, { key: 'LONG', value: 'x'.repeat(30_000) })
  expect(set.status).toBe(201)
  const before = process.memoryUsage().rss
  api.services.jobs.start()
  await api.as('developer').post(`/api/apps/${id}/deploy`)
  await api.services.jobs.idle()
  const [ended] = (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body.data
  expect(ended).toMatchObject({
    status: 'failed',
    error: { code: 'compose_refused', message: 'services.web.command: is too long with its variables.' },
  })
  expect(process.memoryUsage().rss - before).toBeLessThan(80_000_000)
})

/** What is wrong with a file beside which a repository has these texts. */
function issuesWith(text: string, texts: Record<string, string>): readonly { message: string }[] {
  const files = { files: () => Object.keys(texts).sort(), read: (path: string) => texts[path] }
  try {
    parseCompose(text, { files })
  } catch (error) {
    if (error instanceof ComposeError) return error.issues
    throw error
  }
  return []
}

it.each<[string, string, Record<string, string>, RegExp]>([
  [
    'one env_file that is named a hundred times',
    `services: {web: {image: a, env_file: [${lines(100, () => 'a.env').join(', ')}]}}`,
    { 'a.env': `A=${'a'.repeat(100_000)}` },
    /more than 8 MiB/,
  ],
  [
    'one config that is mounted a hundred times',
    `services: {web: {image: a, configs: [${lines(100, (i) => `{source: c, target: /${i}}`).join(', ')}]}}\nconfigs: {c: {file: c.txt}}`,
    { 'c.txt': 'c'.repeat(100_000) },
    /more than 8 MiB/,
  ],
  [
    'one folder that is mounted a hundred times',
    `services: {web: {image: a, volumes: [${lines(100, (i) => `"./conf:/${i}"`).join(', ')}]}}`,
    { 'conf/a.txt': 'c'.repeat(100_000) },
    /more than 8 MiB/,
  ],
  [
    'a thousand variables',
    `services: {web: {image: a, command: "${lines(1001, (i) => `$A${i}`).join(' ')}"}}`,
    {},
    /more than 1000 variables/,
  ],
  [
    'a thousand mounts',
    `services: {web: {image: a, volumes: [${lines(1001, (i) => `"/data/${i}"`).join(', ')}]}}`,
    {},
    /more than 1000 mounts/,
  ],
])('%s is refused with a sentence', (_, text, texts, message) => {
  expect(issuesWith(text, texts).map((issue) => issue.message)).toEqual([expect.stringMatching(message)])
})

it('files of variables with thousands of dots in their paths are looked at at once', () => {
  const names = lines(15, (i) => `- ${'.env.'.repeat(3000)}${i}/x`)
  const before = process.cpuUsage()
  issuesWith(`services:\n  web:\n    image: a\n    env_file:\n      ${names.join('\n      ')}`, {})
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(400)
})

it('a path of slashes is trimmed at once', () => {
  const texts = Object.fromEntries(lines(150, (i) => `conf/${i}.txt`).map((name) => [name, 'x']))
  const target = `/${'/'.repeat(15_000)}x`
  expect(issuesWith(`services: {web: {image: a, volumes: ["./conf:${target}"]}}`, texts)).toEqual([])
})

it('lines that stand apart and files that several services share are taken', () => {
  const texts = { '.env': `A=1\n${'\n'.repeat(200)}B=2\n`.repeat(20), 'c.txt': 'c'.repeat(100_000) }
  const services = lines(20, (i) => `s${i}: {image: a, env_file: .env, volumes: ["./c.txt:/c.txt"]}`)
  expect(issuesWith(`services: {${services.join(', ')}}`, texts)).toEqual([])
})
