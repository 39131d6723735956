import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { compileClient, type CompiledClient, functions } from '#test/support/client'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '#test/support/routes'

const PASSWORD = 'a long enough password'
interface Story {
  story(base_url: string, email: string, password: string): Promise<string[]>
}
let api: TestApi
let document: unknown
const compiled: CompiledClient<Story>[] = []
beforeAll(async () => {
  api = await createTestApi({ jobs: false, environment: { PORTREEVE_ADMIN_PASSWORD: PASSWORD } })
  // The first administrator is made only where there is nobody yet.
  api.kernel.db.sql('DELETE FROM users').run()
  await api.services.identity.ensureAdministrator()
  document = (await api.request('GET', '/api/openapi.json', { as: 'viewer' })).body
})
afterAll(async () => {
  for (const client of compiled) client.dispose()
  await api.close()
})

describe('a TypeScript client generated from the OpenAPI document', () => {
  it('compiles strictly, and tells the story of a user', async () => {
    const client = await compileClient<Story>(document, 'test/fixtures/client/story.ts')
    compiled.push(client)
    expect(client.diagnostics).toEqual([])
    const { story } = await client.load()
    expect(await story(api.url, 'admin@localhost', PASSWORD)).toEqual([
      'INVALID_CREDENTIALS',
      'building',
      '1 of 1',
      'shop',
      'There is no such app.',
      'port',
      'deployment 1',
    ])
  })
  it('has a function for each operation with a second generator, and tells the same story with them', async () => {
    const client = await compileClient<Story>(document, 'test/fixtures/client/story-sdk.ts', functions)
    compiled.push(client)
    expect(client.diagnostics).toEqual([])
    const { story } = await client.load()
    expect(await story(api.url, 'admin@localhost', PASSWORD)).toEqual([
      'INVALID_CREDENTIALS',
      'building',
      '1 of 1',
      'sdk',
      'There is no such app.',
      'port',
      'deployment 1',
      'CONFLICT',
    ])
  })
  it('does not compile with a field that does not exist', async () => {
    const folder = mkdtempSync(join(ROOT, 'test/fixtures/client/wrong-'))
    try {
      const source = readFileSync(join(ROOT, 'test/fixtures/client/story.ts'), 'utf8').replace(
        "name: 'shop', git_url",
        'name: 7, git_adress',
      )
      writeFileSync(join(folder, 'story.ts'), source)
      const client = await compileClient<Story>(document, join(folder.slice(ROOT.length + 1), 'story.ts'))
      compiled.push(client)
      expect(client.diagnostics.join('\n')).toMatch(/git_adress|not assignable to type 'string'/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
