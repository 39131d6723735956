import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { progressTo } from '#server/platform/git/fetch'
import { explainFailure } from '#server/platform/git/failure'
import { startGitServer, type GitServer } from '#test/support/git-server'
import { createHarness, type Harness } from './setup.ts'

let server: GitServer
let harness: Harness
let count = 0
beforeAll(async () => {
  server = await startGitServer()
})
afterAll(() => server.close())
beforeEach(async () => {
  harness = await createHarness({
    allowed: [server.host],
    limits: { max_files: 500, max_bytes: 4 * 1024 ** 2 },
  })
})
afterEach(async () => {
  harness.expectClean()
  await harness.close()
})
const repository = () => server.repository(`bombs/r${(count += 1)}`)

/** A commit whose tree is `depth` folders, one in the other, in each of `width` folders at its top. */
function nested(depth: number, width: number, name = 'd') {
  const target = repository()
  target.commit({ a: 'a' })
  const tree = (lines: string[]) =>
    execFileSync('git', ['-C', target.directory, 'mktree'], {
      input: lines.join('\n'),
      encoding: 'utf8',
    }).trim()
  let inner = tree([`100644 blob ${target.git('rev-parse', 'HEAD:a')}\tf`])
  for (let level = 1; level < depth; level += 1) inner = tree([`040000 tree ${inner}\t${name}`])
  const top = tree(Array.from({ length: width }, (_, index) => `040000 tree ${inner}\tn${index}`))
  const commit = target.git(
    '-c',
    'user.name=x',
    '-c',
    'user.email=x@example.com',
    'commit-tree',
    '-m',
    'x',
    top,
  )
  target.ref('refs/heads/main', commit)
  return target
}

it('folders count as files do: a few files may lie in millions of them', async () => {
  await expect(harness.checkout({ url: nested(60, 100).url })).rejects.toMatchObject({
    code: 'too_many_files',
  })
})

it('a path that is longer than this machine has names for is refused, and nothing is left of it', async () => {
  const target = nested(21, 1, 'd'.repeat(203))
  await expect(harness.checkout({ url: target.url })).rejects.toMatchObject({
    code: 'too_many_files',
    message: 'The repository has a path of more than 2048 bytes.',
  })
})

/** A commit with one file or link of a name that is given in bytes. */
function named(name: Buffer, mode = '100644') {
  const target = repository()
  const head = `commit refs/heads/main\ncommitter x <x@example.com> 1700000000 +0000\ndata 1\nx\n`
  const file = [Buffer.from(`M ${mode} inline "`), name, Buffer.from('"\ndata 11\n/etc/passwd\n')]
  execFileSync('git', ['-C', target.directory, 'fast-import', '--quiet'], {
    input: Buffer.concat([Buffer.from(head), ...file]),
  })
  return target
}

it.each([
  ['a file', 'caf\u00e9.txt', '100644'],
  ['a folder', 'd\u00e9/a.txt', '100644'],
  ['a link', 'l\u00e9', '120000'],
])('%s whose name is no UTF-8 is told by it, and nothing is left of it', async (_what, name, mode) => {
  await expect(harness.checkout({ url: named(Buffer.from(name, 'latin1'), mode).url })).rejects.toMatchObject(
    {
      code: 'bad_name',
      message: expect.stringMatching(/^A name in the repository is not UTF-8: /),
    },
  )
})

it('names are as long as those of files are, whatever characters they have', async () => {
  const good = [Buffer.from('é'.repeat(127)), Buffer.from('\\t'.repeat(200)), Buffer.from('n'.repeat(255))]
  for (const name of good)
    await expect(harness.checkout({ url: named(name).url })).resolves.toBeTypeOf('string')
  await expect(harness.checkout({ url: named(Buffer.from('n'.repeat(256))).url })).rejects.toMatchObject({
    code: 'bad_name',
    message: expect.stringMatching(/^A name in the repository is longer than 255 bytes: nnn/),
  })
})

it('all paths together have a bound, since they are kept in memory', async () => {
  const names = await createHarness({ allowed: [server.host], limits: { max_names_bytes: 1000 } })
  await expect(names.checkout({ url: nested(20, 5, 'd'.repeat(10)).url })).rejects.toMatchObject({
    code: 'too_many_files',
    message: 'The repository has paths of more than 1000 bytes.',
  })
  names.expectClean()
  await names.close()
})

it('what a crash left so deep is removed at the first use, and holds up nobody', async () => {
  const deep = Array.from({ length: 12 }, () => 'd'.repeat(200))
  const left = join(harness.work_directory, 'session-old', 'repository', ...deep)
  mkdirSync(left, { recursive: true })
  mkdirSync(join(harness.base, ...deep), { recursive: true })
  renameSync(join(harness.base, deep[0]!), join(left, deep[0]!))
  const target = repository()
  target.commit({ a: 'a' })
  await harness.git.resolve({ url: target.url }, new AbortController().signal)
  expect(readdirSync(harness.work_directory)).toEqual([])
})

it('attributes make no file larger than it is in the repository, or the whole is too large', async () => {
  const files = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, '$Id$'.repeat(80_000)]))
  const target = repository()
  target.commit({ '.gitattributes': '* ident\n', ...files })
  const folder = await harness.checkout({ url: target.url })
  expect(Object.keys(files).map((name) => statSync(join(folder, name)).size)).toEqual([
    320_000, 320_000, 320_000,
  ])
  target.commit({ '.gitattributes': '* text working-tree-encoding=UTF-32\n' })
  await expect(harness.checkout({ url: target.url })).resolves.toBeTypeOf('string')
  target.commit({ d: 'd'.repeat(320_000) })
  await expect(harness.checkout({ url: target.url })).rejects.toMatchObject({ code: 'too_large' })
})

it('attributes are read to their first mebibyte, and never through a link', async () => {
  const says = () => harness.lines.splice(0).filter((line) => line.includes('Git LFS')).length
  const target = repository()
  for (const [said, attributes] of [
    [1, '* filter=lfs\n'],
    [0, `${'# comment\n'.repeat(110_000)}* filter=lfs\n`],
    [0, { mode: '120000', content: 'attributes' }],
  ] as const) {
    target.commit({ '.gitattributes': attributes, attributes: '* filter=lfs\n' })
    await harness.checkout({ url: target.url })
    expect(says()).toBe(said)
  }
})

it('a commit of a year that no date has is deployed', async () => {
  const target = repository()
  target.commit({ a: 'a' })
  const raw = target
    .git('cat-file', 'commit', 'HEAD')
    .replace(/^committer .*$/m, 'committer x <x@example.com> 99999999999999 +0000')
  const sha = execFileSync(
    'git',
    ['-C', target.directory, 'hash-object', '-t', 'commit', '-w', '--stdin', '--literally'],
    {
      input: `${raw}\n`,
      encoding: 'utf8',
    },
  ).trim()
  target.ref('refs/heads/main', sha)
  await expect(harness.checkout({ url: target.url })).resolves.toBeTypeOf('string')
})

it('a checkout that would take what the disk keeps for Portreeve is ended and leaves nothing', async () => {
  const target = repository()
  target.commit({ a: 'a' })
  let is_full = false
  const full = await createHarness({ allowed: [server.host], isDiskFull: () => is_full })
  server.intercept = () => (is_full = true)
  await expect(full.checkout({ url: target.url })).rejects.toMatchObject({ code: 'DISK_FULL' })
  server.intercept = undefined
  full.expectClean()
  await full.close()
})

it.each(['Load key ', "repository '", "repository 'x", '100% '])(
  'a remote that says %j a hundred thousand times holds up nobody',
  (word) => {
    const stderr = `remote: ${word.repeat(100_000)}`
    const lines: string[] = []
    progressTo((line) => lines.push(line))(stderr)
    const { code, message } = explainFailure({ stderr, host: 'h', has_credential: false, max_bytes: 1 })
    expect([code, message.length < 400, lines]).toEqual(['failed', true, []])
  },
)

it('a remote names no branch that git could not be asked for', async () => {
  const target = repository()
  const sha = target.commit({ a: 'a' })
  const packet = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`
  for (const name of ['main:refs/heads/other', 'a\u001b[2Jb', 'x/../y', '-x']) {
    server.intercept = (request, response) => {
      if (request.method !== 'POST') return false
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' })
      response.end(`${packet(`${sha} HEAD symref-target:refs/heads/${name}\n`)}0000`)
      return true
    }
    const found = await harness.git.resolve({ url: target.url }, new AbortController().signal)
    expect(found, name).toEqual({ branch: 'HEAD', sha })
  }
  server.intercept = undefined
})
