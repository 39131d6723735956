import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { detect } from '#server/builds/detect'
import { openTree } from '#server/builds/source-tree'

const ROOT = join(import.meta.dirname, '../fixtures/stacks')
const names = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)

/**
 * `expect.json` of a fixture: any fields of the plan, and texts that its Dockerfile must or must not hold.
 */
interface Expectation extends Record<string, unknown> {
  dockerfile_contains?: string[]
  dockerfile_excludes?: string[]
}

describe('a repository is understood without configuration', () => {
  it('has a fixture for at least 80 kinds of repository', () => {
    expect(names.length).toBeGreaterThanOrEqual(80)
  })

  it.each(names)('%s', async (name) => {
    const {
      dockerfile_contains = [],
      dockerfile_excludes = [],
      ...fields
    } = JSON.parse(readFileSync(join(ROOT, name, 'expect.json'), 'utf8')) as Expectation
    const plan = detect(await openTree(join(ROOT, name)))
    expect(plan).toMatchObject(fields)
    for (const text of dockerfile_contains) expect(plan.dockerfile).toContain(text)
    for (const text of dockerfile_excludes) expect(plan.dockerfile).not.toContain(text)
    expect(plan.explanation.find(({ field }) => field === 'stack')?.source).toBeTruthy()
  })
})
