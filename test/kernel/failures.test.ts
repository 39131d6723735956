import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ApiError, conflict } from '#server/kernel/errors'
import { FAILURES, failureOf } from '#server/kernel/failures'
import { Fatal } from '#server/kernel/jobs/definition'
import { createTestApi, type TestApi } from '#test/support/api'
import { ROOT } from '#test/support/routes'

const WORDS = Object.keys(FAILURES)
let api: TestApi
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
})
afterAll(() => api.close())

describe('words for why work failed', () => {
  it('a failure with another word does not compile', () => {
    // @ts-expect-error: the word is in no table.
    expect(new Fatal('made_up', 'A sentence.').code).toBe('made_up')
  })
  it('are all made somewhere', () => {
    const text = readdirSync(join(ROOT, 'server'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/kernel\/failures\.ts$/.test(name))
      .map((name) => readFileSync(join(ROOT, 'server', name), 'utf8'))
      .join('\n')
    const made = (word: string) => {
      const [, of, rest] = /^(git|acme|archive|destination|node)_(.+)$/.exec(word) ?? []
      return (
        text.includes(`'${word}'`) ||
        (of !== undefined && text.includes(`\`${of}_\${`) && text.includes(`'${rest}'`)) ||
        text.includes(`('${word.toUpperCase()}'`)
      )
    }
    expect(WORDS.filter((word) => !made(word))).toEqual([])
  })
  it('an error of the API that ends a job has one of them', () => {
    expect(failureOf(conflict('It is there already.'))).toBe('conflict')
    expect(failureOf(new ApiError('CSRF_INVALID', 'Not of a job.'))).toBe('internal')
  })
  it('are enumerated for deployments and jobs in the OpenAPI document, each with what it means', async () => {
    const { body } = await api.as('viewer').get('/api/openapi.json')
    const { Deployment, Job, FailureCode } = body.components.schemas
    expect(FailureCode.enum).toEqual(WORDS)
    for (const [word, text] of Object.entries(FAILURES))
      expect(FailureCode.description).toContain(`\`${word}\`: ${text}`)
    for (const schema of [Deployment, Job])
      expect(JSON.stringify(schema.properties.error)).toContain('"#/components/schemas/FailureCode"')
  })
})
