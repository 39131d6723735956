import { describe, expect, it } from 'vitest'
import { detect } from '#server/builds/detect'
import { DetectionError } from '#server/builds/plan'
import { memoryTree } from '#server/builds/source-tree'

/** What a refused source is told to bring. */
function lookedFor(files: Record<string, string>): string[] {
  try {
    detect(memoryTree(files))
  } catch (error) {
    if (error instanceof DetectionError) return error.looked_for
    throw error
  }
  throw new Error('the source was understood')
}

describe('a source that no stack knows is told at most ten files, the nearest first:', () => {
  it.each([
    ['the usual ones for a page of text', { 'README.md': '' }, 'Dockerfile'],
    ['a name with another case', { 'Package.json': '{}', 'x.js': '' }, 'package.json'],
    [
      'a name that is misspelt',
      { 'requirments.txt': '', 'lib/a.py': '', 'lib/b.py': '' },
      'requirements.txt',
    ],
    ['a name with something behind it', { 'Dockerfile.prod': '' }, 'Dockerfile'],
    ['those of the language of the sources', { 'lib/a.rb': '', 'x.rb': '' }, 'Gemfile'],
    ['those of a language whose project file is missing', { 'main.cs': '' }, '*.csproj'],
  ])('%s', (_, files, first) => {
    const named = lookedFor(files)
    expect(named[0]).toBe(first)
    expect(named.length).toBeLessThanOrEqual(10)
    expect(new Set(named).size).toBe(named.length)
  })
})
