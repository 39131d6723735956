import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { walkContext } from '#server/platform/engine/build/context'
import { parseIgnoreRules } from '#server/platform/engine/build/ignore-patterns'

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

describe('.dockerignore', () => {
  test.each(ROWS)('%j of %j: %j', (lines, path, excluded) => {
    expect(parseIgnoreRules(lines).excludes(path)).toBe(excluded)
  })

  test('patterns that cross folders do not take for ever on a hostile path', () => {
    const rules = parseIgnoreRules('**/*a*a*a*/**/x')
    expect(rules.excludes(`${'a/'.repeat(200)}b`)).toBe(false)
  })
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
