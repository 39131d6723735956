import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createMirrors } from '#server/platform/git/mirrors'
import { startGitServer, type GitRepository, type GitServer } from '#test/support/git-server'
import { createHarness, type Harness } from './setup.ts'

const LARGE = randomBytes(3_000_000)
const never = new AbortController().signal

let server: GitServer
let harness: Harness
let target: GitRepository
let count = 0
/** Bytes that the server has sent for fetches. */
let sent = 0

beforeAll(async () => {
  server = await startGitServer()
})
afterAll(() => server.close())
beforeEach(async () => {
  harness = await createHarness({ allowed: [server.host] })
  target = server.repository(`mirrors/r${(count += 1)}`)
  target.commit({ large: LARGE, text: 'one' })
  sent = 0
  server.intercept = (_request, response) => {
    const write = response.write.bind(response)
    response.write = ((chunk: Uint8Array, ...rest: []) => {
      sent += chunk.length
      return write(chunk, ...rest)
    }) as typeof response.write
    return false
  }
})
afterEach(async () => {
  server.intercept = undefined
  await harness.close()
})

const folder = (name = 'app_a') => join(harness.work_directory, 'mirrors', name)
const checkout = async (
  mirror: string | undefined = 'app_a',
  more: { branch?: string; commit?: string } = {},
) => {
  sent = 0
  const directory = await harness.checkout({ url: target.url, ...more }, mirror ? { mirror } : {})
  return {
    text: readFileSync(join(directory, 'text'), 'utf8'),
    is_whole: readFileSync(join(directory, 'large')).equals(LARGE),
    entries: readdirSync(directory).toSorted(),
    sent,
  }
}

it('what was fetched before is not fetched again, and the checkout is the same as without', async () => {
  expect((await checkout()).sent).toBeGreaterThan(LARGE.length)
  target.commit({ text: 'two' })
  const second = await checkout('app_a', { branch: 'main' })
  expect(second).toMatchObject({ text: 'two', is_whole: true, entries: ['large', 'text'] })
  expect(second.sent).toBeLessThan(10_000)
  expect((await checkout('app_a')).sent).toBeLessThan(10_000)
})

it('a commit of before comes back, and another branch is read on top', async () => {
  const first = target.git('rev-parse', 'main').trim()
  await checkout()
  target.commit({ large: LARGE, text: 'other' }, 'x', { branch: 'other' })
  expect(await checkout('app_a', { branch: 'other' })).toMatchObject({ text: 'other' })
  target.commit({ text: 'two' })
  expect(await checkout('app_a', { branch: 'main' })).toMatchObject({ text: 'two', is_whole: true })
  expect(await checkout('app_a', { branch: 'main', commit: first })).toMatchObject({
    text: 'one',
    is_whole: true,
  })
})

it('a commit that the remote has no more is not deployed from what was kept', async () => {
  const first = target.git('rev-parse', 'main').trim()
  await checkout('app_a', { branch: 'main' })
  const second = target.commit({ large: LARGE, text: 'new' }, 'x', { branch: 'fresh' })
  target.git('update-ref', 'refs/heads/main', second)
  target.deleteBranch('fresh')
  target.git('reflog', 'expire', '--expire=now', '--all')
  target.git('gc', '--quiet', '--prune=now')
  await expect(checkout('app_a', { branch: 'main', commit: first })).rejects.toMatchObject({
    code: 'commit_not_found',
  })
  expect(await checkout('app_a', { branch: 'main' })).toMatchObject({ text: 'new' })
})

it('nobody reads what was fetched for another app', async () => {
  await checkout('app_a')
  expect((await checkout('app_b')).sent).toBeGreaterThan(LARGE.length)
  await harness.git.forget('app_b')
  expect(existsSync(folder('app_b'))).toBe(false)
  expect((await checkout('app_a')).sent).toBeLessThan(10_000)
})

it('another address begins anew and leaves nothing of the one before', async () => {
  await checkout()
  const before = readdirSync(folder())
  target = server.repository(`mirrors/moved${count}`)
  target.commit({ large: LARGE, text: 'moved' })
  expect((await checkout()).sent).toBeGreaterThan(LARGE.length)
  expect(readdirSync(folder())).toHaveLength(1)
  expect(readdirSync(folder())).not.toEqual(before)
})

it.each([
  ['its packs', /\.pack$/, 'not a pack'],
  ['what it says of itself', /^mirror\.json$/, ''],
  ['its borders', /^shallow$/, undefined],
])(
  'a mirror damaged in %s is fetched anew in place of failing the deployment',
  async (_, damaged, content) => {
    await checkout()
    const kept = join(folder(), readdirSync(folder())[0]!)
    for (const file of readdirSync(kept).filter((name) => damaged.test(name))) {
      rmSync(join(kept, file))
      if (content !== undefined) writeFileSync(join(kept, file), content)
    }
    target.commit({ text: 'two' })
    expect(await checkout()).toMatchObject({ text: 'two', is_whole: true })
    target.commit({ text: 'three' })
    expect((await checkout()).sent).toBeLessThan(10_000)
  },
)

it('small repositories keep nothing, since a fresh fetch of them takes no longer', async () => {
  target = server.repository(`mirrors/small${count}`)
  target.commit({ large: 'x', text: 'one' })
  await checkout()
  expect(existsSync(folder())).toBe(false)
})

it('after eight fetches it begins anew, so that it does not grow for ever', async () => {
  const fetched: number[] = []
  for (let round = 0; round < 10; round += 1) {
    target.commit({ text: `${round}` })
    fetched.push((await checkout()).sent)
  }
  expect(fetched.filter((bytes) => bytes > LARGE.length)).toHaveLength(2)
})

it('a mirror that nobody used for 30 days is removed', async () => {
  await checkout('app_a')
  await checkout('app_b')
  const old = join(folder('app_a'), readdirSync(folder('app_a'))[0]!, 'mirror.json')
  const before = new Date(Date.now() - 31 * 86_400_000)
  utimesSync(old, before, before)
  await harness.git.pruneMirrors(Date.now())
  expect([existsSync(folder('app_a')), existsSync(folder('app_b'))]).toEqual([false, true])
  await harness.git.resolve({ url: target.url }, never)
})

it('all of them together keep to their part of the disk: those used longest ago go first', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-mirrors-'))
  const mirrors = createMirrors(directory, undefined, () => 8_000_000)
  const repository = join(directory, '..', `${basename(directory)}-repository`)
  const packs = join(repository, '.git/objects/pack')
  mkdirSync(packs, { recursive: true })
  writeFileSync(join(packs, 'pack-00.pack'), LARGE)
  const keep = (name: string) => mirrors.keep(name, 'https://git.example.com/a', repository, 'f'.repeat(40))
  const use = (name: string, seconds: number) => {
    const [kept = ''] = readdirSync(join(directory, name))
    utimesSync(join(directory, name, kept, 'mirror.json'), seconds, seconds)
  }
  for (const name of ['app_a', 'app_b']) await keep(name)
  use('app_a', 2_000)
  use('app_b', 1_000)
  await keep('app_c')
  expect(readdirSync(directory).sort()).toEqual(['app_a', 'app_c'])
  await keep('app_c')
  expect(readdirSync(directory).sort()).toEqual(['app_a', 'app_c'])
  for (const folder of [directory, repository]) rmSync(folder, { recursive: true })
})
