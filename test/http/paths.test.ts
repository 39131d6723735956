import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { readDefinitions } from '#test/support/routes'

const endpoints = await readDefinitions()
let api: TestApi
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
})
afterAll(() => api.close())

/** Paths of one route with the name of another in the place of an id: `/api/apps/detect/logs`. */
function mixed(path: string): string[] {
  const segments = path.split('/')
  return segments.flatMap((segment, at) => {
    if (!segment.startsWith(':')) return []
    const before = segments.slice(0, at).join('/')
    const names = endpoints
      .map((one) => one.path.split('/'))
      .filter((one) => one.slice(0, at).join('/') === before && one[at] && !one[at].startsWith(':'))
      .map((one) => one[at]!)
    return [...new Set(names)].map((name) =>
      [...segments.slice(0, at), name, ...segments.slice(at + 1)].join('/'),
    )
  })
}

describe('a path with the name of another where an id stands', () => {
  it('is none, or accepts what that other accepts: no page, and no endpoint without its id', async () => {
    const served = new Set(endpoints.map(({ method, path }) => `${method} ${path}`))
    const asked = endpoints
      .flatMap(({ method, path }) => mixed(path).map((to) => ({ method, path: to })))
      .filter(({ method, path }) => !served.has(`${method} ${path}`))
    const wrong: string[] = []
    for (const { method, path } of asked) {
      const { status, text } = await api.request(method.toUpperCase(), path, { as: 'admin' })
      // Behind `webhooks/git` and `webhooks/deploy` stands the secret of a hook, which may be any word.
      const is_hook = /^\/api\/webhooks\/(git|deploy)\/\w+$/.test(path)
      const words = is_hook
        ? /"There is no such webhook\."|accepts POST/
        : /"There is no such path\."|"This path accepts /
      if (!words.test(text)) wrong.push(`${method} ${path}: ${status} ${text.slice(0, 100)}`)
    }
    expect(wrong).toEqual([])
    expect(asked.map(({ path }) => path)).toContain('/api/apps/detect/logs')
  })
})
