import { expect, it } from 'vitest'
import { composeBuildPlan } from '#server/builds/compose-plan'
import { memoryTree } from '#server/builds/source-tree'
import { type ComposeError, parseCompose } from '#server/compose/parse'

const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i)).join('\n')
/** Services that share a list: what stands in it counts once for each of them. */
const sharing = (services: number, key: string, list: string) =>
  `x-list: &list\n${list}\nservices:\n${lines(services, (i) => `  s${i}: {image: a, ${key}: *list}`)}`
const issuesOf = (text: string, files: Record<string, string>, variables = {}) => {
  try {
    parseCompose(text, { files: memoryTree(files), variables })
    return []
  } catch (error) {
    return (error as ComposeError).issues.map(({ path, message }) => `${path}: ${message}`)
  }
}

it('empty lines of a .env file take no time that grows with their square', () => {
  const files = { '.env': `${'\n'.repeat(200_000)}!\nTAG=1` }
  const plan = parseCompose('services: {web: {image: "a:${TAG}"}}', { files: memoryTree(files) })
  expect(plan.services[0]!.image).toBe('a:1')
})
it.each([
  ['more variables than an app may have', lines(2001, (i) => `K${i}=1`)],
  ['more than a compose file may have', `K=${'x'.repeat(300_000)}`],
])('a file of variables with %s is refused, wherever it is named', (_what, text) => {
  const service = 'services: {web: {image: a, env_file: [big.conf]}}'
  expect(issuesOf(service, { 'big.conf': text })).toEqual([
    expect.stringMatching(/^services\.web\.env_file\.0: has more than 2000 variables/),
  ])
  expect(issuesOf('services: {web: {image: a}}', { '.env': text })).toEqual([
    expect.stringMatching(/^\.env: has more than 2000 variables/),
  ])
})
it.each([
  [
    'variables of one file',
    sharing(
      60,
      'env_file',
      lines(20, () => '  - big.conf'),
    ),
    { 'big.conf': lines(1000, (i) => `K${i}=${'x'.repeat(10)}`) },
    /variables of more than 8 MiB/,
  ],
  [
    'the variables of the app',
    sharing(
      60,
      'env_file',
      lines(200, () => '  - .env.production'),
    ),
    {},
    /variables/,
  ],
  [
    'mounts of files',
    sharing(
      60,
      'volumes',
      lines(100, (i) => `  - ./f${i % 9}.txt:/x/${i}`),
    ),
    Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`f${i}.txt`, 'x'])),
    /more than 1000 mounts and files/,
  ],
  [
    'files of a folder',
    sharing(10, 'volumes', '  - ./conf:/conf'),
    Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`conf/${i}`, ''])),
    /more than 1000 mounts and files/,
  ],
  [
    'the contents of one file',
    sharing(20, 'volumes', '  - ./fat.txt:/x/fat'),
    { 'fat.txt': 'x'.repeat(1_000_000) },
    /files of more than 8 MiB/,
  ],
  [
    'the contents of one config',
    `configs: {fat: {file: fat.txt}}\n${sharing(20, 'configs', '  - fat')}`,
    { 'fat.txt': 'x'.repeat(1_000_000) },
    /files of more than 8 MiB/,
  ],
])('%s, taken by many services, are refused before they fill the memory', (_what, text, files, message) => {
  const variables = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`V${i}`, 'x']))
  expect(issuesOf(text, files, variables)).toEqual([expect.stringMatching(message)])
})
it.each([
  ['mounts', (i: number) => `- ./f${i}.txt:/x/${i}`, 'volumes', ''],
  ['files of variables', (i: number) => `- f${i}.txt`, 'env_file', ''],
  ['configs that nothing mounts', (i: number) => `c${i}: {file: f${i}.txt}`, undefined, 'configs:'],
])('a thousand large files are not read for one compose file: %s', (_what, line, key, top) => {
  const names = Array.from({ length: 900 }, (_, i) => `f${i}.txt`).sort()
  const text = 'x'.repeat(1_000_000)
  let reads = 0
  const files = {
    files: () => names,
    read: (path: string) => (path.endsWith('.txt') && ++reads ? text : undefined),
  }
  const list = (indent: string) => lines(900, (i) => `${indent}${line(i)}`)
  const compose = key
    ? `services:\n  web:\n    image: a\n    ${key}:\n${list('      ')}`
    : `${top}\n${list('  ')}\nservices: {web: {image: a}}`
  const issues: string[] = []
  try {
    parseCompose(compose, { files })
  } catch (error) {
    issues.push(...(error as ComposeError).issues.map(({ message }) => message))
  }
  expect(issues).toContain('The file names files of more than 16 MiB; build images with them.')
  expect(reads).toBeLessThan(20)
})
it('a folder of many files is gone through once, however many mounts name it', () => {
  const folders = Array.from({ length: 2000 }, (_, i) => `data/${i}/.gitkeep`).sort()
  let looks = 0
  const names = new Proxy(folders, {
    get(target, key) {
      looks += 1
      return Reflect.get(target, key) as unknown
    },
  })
  const compose = `services:\n  web:\n    image: a\n    volumes:\n${lines(900, (i) => `      - ./data:/x/${i}`)}`
  const { services } = parseCompose(compose, { files: { files: () => names, read: () => undefined } })
  expect(services[0]!.mounts).toHaveLength(900)
  expect(looks).toBeLessThan(3 * folders.length)
})
it.each(['ports', 'expose'])('%s of ten thousand are refused before they are many more', (key) => {
  const ranges = (service: number) =>
    Array.from({ length: 90 }, (_, i) => `"${1 + i * 100}-${99 + i * 100 + (service % 2)}"`).join(', ')
  const compose = `services:\n${lines(60, (i) => `  s${i}: {image: a, ${key}: [${ranges(i)}]}`)}`
  expect(issuesOf(compose, {})).toEqual(['services: The services name more than 10000 ports.'])
})
it('what sixty services really share is taken', () => {
  const plan = parseCompose(sharing(60, 'volumes', '  - ./conf:/etc/app:ro\n  - ./app.conf:/app.conf:ro'), {
    files: memoryTree({ 'conf/a.yaml': 'x', 'conf/b/c.yaml': 'y', 'conf-d/no': '', 'app.conf': 'z' }),
  })
  for (const { mounts } of plan.services)
    expect(mounts.map(({ path }) => path)).toEqual(['/etc/app/a.yaml', '/etc/app/b/c.yaml', '/app.conf'])
})
it('a plan names five hundred keys of a kind at most, and no path at any length', () => {
  const keys = lines(90, (i) => `  x-${'k'.repeat(900)}${i}: a`)
  const services = lines(58, (i) => `  s${i}: {image: a, <<: *list}`)
  const plan = composeBuildPlan(parseCompose(`x-list: &list\n${keys}\nservices:\n${services}`))
  expect([plan.compose?.ignored.length, plan.compose?.ignored[0]?.path.length]).toEqual([
    500,
    expect.any(Number),
  ])
  expect(JSON.stringify(plan).length).toBeLessThan(1_000_000)
})
