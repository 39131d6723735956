import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { notFound } from '#server/kernel/errors'
import type { EndpointHandler } from '#server/http/definition'
import {
  permissionMatrix,
  PERMISSION_CALLERS,
  renderPermissions,
  type Verdict,
  verdictOf,
} from '#server/http/permissions'
import { type Caller, createTestApi, type TestApi } from '#test/support/api'
import { makeResources } from '#test/support/resources'
import { readDefinitions, ROOT } from '#test/support/routes'

/** Ways to prove who calls; a narrowed key is a key only. */
const WAYS = ['bearer', 'cookie', 'cookie without CSRF token', 'api key'] as const
type Way = (typeof WAYS)[number]
const waysOf = (name: string): readonly Way[] => (name.endsWith(' key') ? ['api key'] : WAYS)
/** Headers of each caller in each way, from real sessions and keys. */
const proofs = new Map<string, Record<string, string>>()

/** How each caller of the matrix is named in the test api. */
const AS: Record<string, Caller> = {
  admin: 'admin',
  owner: 'owner',
  developer: 'developer',
  viewer: 'viewer',
  outsider: 'outsider',
  'platform viewer': 'reader',
  'read key': 'read_key',
  'deploy key': 'deploy_key',
  'project key': 'admin',
}
const endpoints = await readDefinitions()

let api: TestApi
/** A resource of each kind in the default project, by the noun that endpoints name. */
let existing: Record<string, string>
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  existing = await makeResources(api, 'owner', {
    project_id: api.services.http.default_project(),
    mark: 'matrix',
  })
})
beforeAll(async () => {
  const { identity } = api.services
  for (const name of Object.keys(PERMISSION_CALLERS)) {
    const actor = { ...api.actor(AS[name]!), method: 'bearer' as const, scope: 'full' as const }
    const user = identity.account.own(actor)
    const { token, cookie, session_id } = await identity.sessions.open(
      user,
      { address: '127.0.0.1', user_agent: '' },
      () => undefined,
    )
    const { csrf_token } = identity.sessions.csrfToken({ ...actor, credential_id: session_id })
    const { key } = await identity.api_keys.create(actor, {
      name,
      scope: PERMISSION_CALLERS[name]!.scope ?? 'full',
      ...(PERMISSION_CALLERS[name]!.limited ? { project_ids: [existing.project!] } : {}),
    })
    proofs.set(`${name} bearer`, { authorization: `Bearer ${token}` })
    proofs.set(`${name} cookie`, {
      cookie: `session=${cookie}`,
      'x-csrf-token': csrf_token,
      origin: api.url,
    })
    proofs.set(`${name} cookie without CSRF token`, { cookie: `session=${cookie}` })
    proofs.set(`${name} api key`, { 'x-api-key': key })
  }
})
afterAll(() => api.close())

/** The path with the ids of existing resources; whatever has no noun gets an id that nobody has. */
function filled(path: string, definition: EndpointHandler['definition']): string {
  const { scope } = definition
  const noun = typeof scope === 'object' ? scope.noun : undefined
  const param = typeof scope === 'object' ? (scope.param ?? 'id') : 'id'
  return path.replace(/:(\w+)/g, (_all, name: string) =>
    noun !== undefined && name === param
      ? (existing[noun] ?? `nothing_of_${noun}`)
      : 'unknown_00000000000000000000',
  )
}

/** The existing resource or project, for endpoints whose body names it. */
function namedInBody({ scope }: EndpointHandler['definition']): { body?: Record<string, string> } {
  if (scope === 'body') return { body: { project_id: existing.project! } }
  return typeof scope === 'object' && scope.field !== undefined
    ? { body: { [scope.field]: existing[scope.noun]! } }
    : {}
}

describe('T5: every endpoint, role and way to authenticate', () => {
  it('is what docs/permissions.md says; run `npm run permissions` after a change that is meant', () => {
    expect(readFileSync(join(ROOT, 'docs/permissions.md'), 'utf8')).toBe(
      renderPermissions(permissionMatrix(endpoints)),
    )
  })
  it('finds the project of every endpoint that names a kind of resource', () => {
    const nouns = new Set(
      endpoints.flatMap(({ definition: { scope } }) => (typeof scope === 'object' ? [scope.noun] : [])),
    )
    expect([...nouns].filter((noun) => existing[noun] === undefined)).toEqual([])
  })
  it('lets nobody without credentials into anything but the public endpoints', async () => {
    const open: string[] = []
    for (const { method, path, definition } of endpoints) {
      const { status } = await api.request(method.toUpperCase(), filled(path, definition))
      if (status !== 401 && definition.access !== 'public') open.push(`${method} ${path} answered ${status}`)
    }
    expect(open).toEqual([])
    expect(
      endpoints
        .filter(({ definition }) => definition.access === 'public')
        .map(({ path }) => path)
        .filter(
          (path) =>
            !/^\/api\/(auth\/(login|invitations\/accept|password\/(forgot|reset))|webhooks\/(git|deploy)\/:token)$/.test(
              path,
            ),
        ),
    ).toEqual([])
  })
  it.each(Object.keys(PERMISSION_CALLERS).flatMap((name) => waysOf(name).map((way) => [name, way] as const)))(
    'answers %s with %s as the matrix says',
    async (name, way) => {
      const wrong: string[] = []
      for (const { method, path, definition } of endpoints) {
        const isRefusedByCsrf =
          way === 'cookie without CSRF token' && method !== 'get' && definition.access !== 'public'
        const expected: Verdict = isRefusedByCsrf
          ? 403
          : verdictOf(definition, method.toUpperCase(), PERMISSION_CALLERS[name]!)
        // What would be done is not to be done here: a body that cannot be read stops every call that the
        // rights let through.
        const unreadable = { raw: '{', type: definition.upload ? 'text/plain' : 'application/json' }
        const answer = await api.request(method.toUpperCase(), filled(path, definition), {
          ...(method !== 'get' && expected === 'yes' ? { raw: unreadable.raw } : namedInBody(definition)),
          headers: {
            ...proofs.get(`${name} ${way}`),
            ...(method !== 'get' && expected === 'yes' ? { 'content-type': unreadable.type } : {}),
          },
        })
        const noun = typeof definition.scope === 'object' ? definition.scope.noun : 'project'
        const isRefused =
          answer.status === 401 ||
          answer.status === 403 ||
          (answer.status === 404 && answer.body?.error?.message === notFound(noun).message)
        if (isRefused !== (expected !== 'yes') || (expected !== 'yes' && answer.status !== expected))
          wrong.push(
            `${method} ${path}: expected ${expected}, got ${answer.status} ${answer.text.slice(0, 120)}`,
          )
      }
      expect(wrong).toEqual([])
    },
  )
})

interface Entries {
  entries?: Record<string, Entries & { type?: string }>
}
/** Fields that decide about rights or identity somewhere, whatever an endpoint accepts. */
const DANGEROUS = [
  'id',
  'team_id',
  'project_id',
  'user_id',
  'owner_id',
  'role',
  'status',
  'is_admin',
  'is_default',
  'created_at',
  'created_by',
  'live_deployment_id',
  'password_hash',
  'verified_at',
  'toString',
]
/** Everything that is stored, but for what every request notes of its caller. */
const stored = () =>
  JSON.stringify(
    (
      api.kernel.db
        .sql(
          `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('audit_log', 'sessions', 'api_keys', 'idempotency_keys')`,
        )
        .pluck()
        .all() as string[]
    ).map((table) => api.kernel.db.sql(`SELECT * FROM "${table}"`).all()),
  )

describe('T22: what a body may set', () => {
  it('is what its endpoint lists: every other field, all that its answer has among them, is refused by name and changes nothing', async () => {
    const before = stored()
    const wrong: string[] = []
    let asked = 0
    for (const { method, path, definition } of endpoints) {
      const own = (definition.body as Entries | undefined)?.entries
      if (own === undefined) continue
      const shown = Object.keys(
        ((definition.response as Entries | undefined)?.entries?.data as Entries | undefined)?.entries ?? {},
      )
      for (const field of new Set([...DANGEROUS, ...shown])) {
        if (Object.hasOwn(own, field)) continue
        const body = {
          ...(definition.example as object | undefined),
          ...namedInBody(definition).body,
          [field]: 'admin',
        }
        const answer = await api.request(method.toUpperCase(), filled(path, definition), {
          as: 'admin',
          body,
          headers: { 'x-forwarded-for': `198.18.0.${(asked += 1) & 255}` },
        })
        if (answer.status !== 422 || !answer.text.includes(field))
          wrong.push(`${method} ${path} with ${field}: ${answer.status} ${answer.text.slice(0, 100)}`)
      }
    }
    expect(wrong).toEqual([])
    expect(asked).toBeGreaterThan(500)
    expect(stored()).toBe(before)
  })
  it('has no key that reaches into the prototype of an object', async () => {
    const wrong: string[] = []
    for (const { method, path, definition } of endpoints) {
      if (!definition.body) continue
      const { status } = await api.request(method.toUpperCase(), filled(path, definition), {
        as: 'admin',
        raw: '{"__proto__":{"role":"admin"}}',
        headers: { 'content-type': 'application/json' },
      })
      // The resource that the body was to name is looked for first.
      if (
        status !== 400 &&
        !(typeof definition.scope === 'object' && definition.scope.field !== undefined && status === 404)
      )
        wrong.push(`${method} ${path}: ${status}`)
    }
    expect(wrong).toEqual([])
  })
})
