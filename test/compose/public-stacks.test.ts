import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ComposeIssue } from '#server/compose/issues'
import { ComposeError, parseCompose } from '#server/compose/parse'
import { createTestApi, type TestApi } from '#test/support/api'

const FOLDER = join(import.meta.dirname, '../fixtures/compose-stacks')

/**
 * Stacks in the forms in which people publish them. Comments at the top say which paths have to be refused, and
 * which files the repository has beside the compose file.
 */
const STACKS = readdirSync(FOLDER).map((name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8')
  const listed = (what: string) =>
    (new RegExp(`^# ${what}: (.*)$`, 'm').exec(text)?.[1] ?? '').split(' ').filter(Boolean)
  return { name, text, files: listed('files'), refused: listed('refused').sort() }
})

const refusedPaths = (stack: (typeof STACKS)[number]): string[] =>
  issuesOf(stack)
    .map(({ path }) => path)
    .sort()

function issuesOf({ text, files }: (typeof STACKS)[number]): readonly ComposeIssue[] {
  const repository = new Map(['compose.yaml', ...files].map((name) => [name, 'FROM a']))
  try {
    parseCompose(text, {
      files: { files: () => [...repository.keys()].sort(), read: (path) => repository.get(path) },
    })
    return []
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error
    return error.issues
  }
}

describe('stacks as people publish them', () => {
  it.each(STACKS)('$name is taken, but for the keys that it says', (stack) => {
    expect(refusedPaths(stack)).toEqual(stack.refused)
  })

  it('are taken nearly all, as long as they use no refused key', () => {
    const asking = STACKS.map(issuesOf).filter((issues) =>
      issues.every(({ message }) => !message.startsWith('is refused')),
    )
    const taken = asking.filter((issues) => issues.length === 0)
    expect(taken.length / asking.length).toBeGreaterThanOrEqual(0.9)
  })

  it('are enough to speak for the others', () => {
    expect(STACKS.length).toBeGreaterThanOrEqual(40)
    expect(STACKS.filter(({ refused }) => refused.length === 0).length).toBeGreaterThanOrEqual(30)
  })
})

describe('stacks that are sent without their repository', () => {
  let api: TestApi
  beforeAll(async () => {
    api = await createTestApi({ jobs: false })
  })
  afterAll(() => api.close())

  it.each(STACKS)(
    '$name becomes an app, or every refusal names its path',
    async ({ name, text, files, refused }) => {
      const app_name = name.replace('.yaml', '')
      const { status, body } = await api.as('developer').post('/api/apps', { name: app_name, compose: text })
      const needs_files = files.some((file) => !file.endsWith('.env'))
      expect([201, ...(refused.length > 0 || needs_files ? [422] : [])], JSON.stringify(body)).toContain(
        status,
      )
      if (status === 201) return
      const paths = body.error.details.map((one: { path: string }) => one.path)
      expect(paths).toEqual(expect.arrayContaining(refused.map((path) => `compose.${path}`)))
      for (const path of paths) expect(path).toMatch(/^compose\.(services|volumes|configs|secrets|include)\b/)
    },
  )
})
