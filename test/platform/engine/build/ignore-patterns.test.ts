import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { walkContext } from '#server/platform/engine/build/context'
import { emptySource, type SyncCall, sendFiles } from '#server/platform/engine/build/file-sync'
import { parseIgnoreRules, type Verdict } from '#server/platform/engine/build/ignore-patterns'

/** Rows: lines of a .dockerignore, a path, whether Docker leaves it out. */
const ROWS: [string, string, boolean][] = [
  ['a', 'a', true],
  ['a', 'a/b', true],
  ['a', 'b/a', false],
  ['/a', 'a', true],
  ['a/', 'a/b', true],
  ['./a', 'a', true],
  ['a/../b', 'b', true],
  ['*.log', 'x.log', true],
  ['*.log', 'd/x.log', false],
  ['**/*.log', 'x.log', true],
  ['**/*.log', 'd/e/x.log', true],
  ['*/x', 'd/x', true],
  ['*/x', 'd/e/x', false],
  ['**', 'anything/at/all', true],
  ['d/**', 'd/e/f', true],
  ['d/**', 'd', false],
  ['**/d', 'a/b/d/c', true],
  ['a/**/z', 'a/z', true],
  ['a/**/z', 'a/b/c/z', true],
  ['?.md', 'a.md', true],
  ['?.md', 'ab.md', false],
  ['[ab].md', 'b.md', true],
  ['[^ab].md', 'c.md', true],
  ['[^ab].md', 'a.md', false],
  ['[a-c].md', 'b.md', true],
  ['\\*', '*', true],
  ['\\*', 'a', false],
  ['a.b', 'axb', false],
  ['a+(b)', 'a+(b)', true],
  ['# a', '# a', false],
  [' a ', 'a', true],
  ['\uFEFFa', 'a', true],
  ['', 'a', false],
  ['*\n!keep', 'keep', false],
  ['*\n!keep', 'other', true],
  ['*\n!keep\nkeep', 'keep', true],
  ['d\n!d/keep', 'd/keep', false],
  ['d\n!d/keep', 'd/x', true],
  ['!a', 'a', false],
  ['*.md\n!README*.md\nREADME-secret.md', 'README-secret.md', true],
  ['*.md\n!README*.md', 'README-x.md', false],
  ['[z-a]', 'b', false],
  ['[', '[', true],
]

/** As a walk asks: each folder of the path first. */
function excludes(lines: string, path: string): boolean {
  const rules = parseIgnoreRules(lines)
  const parts = path.split('/')
  let verdict: Verdict | undefined
  for (const [at] of parts.entries()) verdict = rules.judge(parts.slice(0, at + 1).join('/'), verdict)
  return verdict!.excluded
}
/** The same patterns with more wildcards than an expression takes, which mean what they did. */
const INVOLVED: typeof ROWS = [
  ['**/**/*.log', 'd/e/x.log', true],
  ['**/**/*.log', 'x.log', true],
  ['**/**/*.log', 'd/x.logs', false],
  ['a/**/b/**/z', 'a/b/z', true],
  ['a/**/b/**/z', 'a/x/b/y/y/z', true],
  ['a/**/b/**/z', 'a/xb/z', false],
  ['**/a/**/[bc]?*/**', 'x/a/y/cd/e', true],
  ['**/a/**/[bc]?*/**', 'x/a/y/cd', false],
  ['*a*n', 'ban', true],
  ['*a*n', 'ba/n', false],
  ['*a*n', 'banana', false],
  ['*n*n*', 'a', false],
  ['b**/n', 'b/a/n', true],
  ['b*a**/n', 'bana/na/n', true],
  ['b*a**/n', 'bn/na/n', false],
  ['*[/a]*c', 'ba/c', true],
  ['*a*a*a', 'bananas', false],
  ['*a*a*a', 'banana', true],
  ['*a*a*a', 'ba/na/na', false],
  ['**a**b**c', 'x/a/b/y/c', true],
  ['**a/**b/**c', 'a/x/b/y/c', true],
]

describe('.dockerignore', () => {
  test.each([...ROWS, ...INVOLVED])('%j of %j: %j', (lines, path, excluded) => {
    expect(excludes(lines, path)).toBe(excluded)
  })

  test.each([
    ['many stars', `${'*a'.repeat(100)}b`, 'a'.repeat(250)],
    ['many folders', `${'**/'.repeat(50)}x`, `${'a/'.repeat(200)}b`],
    ['folders with names', `${'**/a/'.repeat(50)}x`, `${'a/'.repeat(200)}b`],
    ['both', '**/*a*a*a*/**/x', `${'a/'.repeat(200)}b`],
  ])('does not take for ever on a hostile path: %s', (_, pattern, path) => {
    expect(excludes(pattern, path)).toBe(false)
  })
})

test('patterns that take long are compared with a rest after each', async () => {
  const rules = parseIgnoreRules(Array.from({ length: 40 }, (_, n) => `*a*b*${n}`).join('\n'))
  let rests = 0
  const pace = { rest: () => Promise.resolve(void (rests += 1)), pause: async () => {} }
  expect(await rules.judgeInPieces(pace, 'xaxbx7')).toEqual(rules.judge('xaxbx7'))
  expect(rests).toBe(40)
})

describe('a build context', () => {
  async function walk(files: string[], ignore = ''): Promise<string[]> {
    const folder = mkdtempSync(join(tmpdir(), 'portreeve-walk-'))
    for (const file of files) {
      mkdirSync(join(folder, dirname(file)), { recursive: true })
      writeFileSync(join(folder, file), file)
    }
    symlinkSync('/etc', join(folder, 'etc-link'))
    if (ignore) writeFileSync(join(folder, '.dockerignore'), `${ignore}\n.dockerignore`)
    const paths: string[] = []
    for await (const { path, kind } of walkContext(folder)) paths.push(`${kind} ${path}`)
    rmSync(folder, { recursive: true })
    return paths
  }

  test.each([
    ['too many patterns', ['a'], 'x\n'.repeat(2100), /too many patterns/],
    ['too many wildcards', ['a'], `${'*a'.repeat(200)}\n`.repeat(20), /too many wildcards/],
    ['many wildcards in one pattern', ['a'], '**a'.repeat(150), /too many wildcards/],
    [
      'names that may end anywhere',
      ['a'],
      Array.from({ length: 600 }, (_, n) => `*a*${n}`).join('\n'),
      /too many/,
    ],
    [
      'names before folders',
      ['a'],
      Array.from({ length: 600 }, (_, n) => `*a**/${n}`).join('\n'),
      /too many/,
    ],
    ['a file of patterns that is none', ['a'], '#'.repeat(300_000), /larger than 256 KiB/],
    ['folders in folders', [`${'a/'.repeat(600)}b`], '', /a path of more than 1024 characters/],
  ])('is refused with a sentence: %s', async (_, files, ignore, sentence) => {
    await expect(walk(files, ignore)).rejects.toMatchObject({
      name: 'EngineError',
      message: expect.stringMatching(sentence),
      hint: expect.any(String),
    })
  })
  test('is walked in the order of bytes, a folder before what is in it, links unfollowed, .git left out at any depth', async () => {
    expect(await walk(['b/x', 'a.txt', 'a/z', 'B', 'sub/.git/config', '.git/HEAD', '.gitignore'])).toEqual(
      [
        'file .gitignore',
        'file B',
        'folder a',
        'file a/z',
        'file a.txt',
        'folder b',
        'file b/x',
        'link etc-link',
        'folder sub',
      ].toSorted((one, other) =>
        Buffer.compare(
          Buffer.from(one.split(' ')[1]!.replaceAll('/', '\0')),
          Buffer.from(other.split(' ')[1]!.replaceAll('/', '\0')),
        ),
      ),
    )
  })

  test('has the parents of what a ! line takes back in, and no other folder', async () => {
    expect(await walk(['a/b/keep', 'a/b/drop', 'a/c/drop', 'd/drop', 'top'], '*\n!a/b/keep\n!top')).toEqual([
      'folder a',
      'folder a/b',
      'file a/b/keep',
      'file top',
    ])
  })
})

test('a builder hears at once that a context cannot be sent, and does not wait for the rest', async () => {
  const call = {
    cancelled: false,
    write: () => true,
    once() {},
    end() {},
    async *iterator() {
      await new Promise(() => {})
      yield { type: 0 }
    },
  }
  const source = {
    ...emptySource,
    entries: () => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('no such folder')) }),
    }),
  }
  await expect(sendFiles(call as unknown as SyncCall, source)).rejects.toThrow('no such folder')
})
