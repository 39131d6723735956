import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as v from 'valibot'
import { withoutSecrets } from '#server/http/secret-answers'
import { MASK, SECRET } from '#server/kernel/schemas'
import { createTestApi, type TestApi } from '#test/support/api'
import { essenceOf, nameOf, secretFields, sentIn, textFields } from '#test/support/secret-fields'

let api: TestApi
let document: Parameters<typeof textFields>[0]
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  document = (await api.request('GET', '/api/openapi.json', { as: 'viewer' })).body
})
afterAll(() => api.close())

/** The last name of a path, when it sounds like something that nobody else may know. */
const SOUNDS_SECRET =
  /(^|_)(password|passphrase|secret|token|ticket|hmac|recovery_codes|otpauth_url)(_|$|\[)|private_key|hmac_key|^key$/
/** The name of a variable, and no key to anything. */
const NAMES_A_VARIABLE =
  /^\w+ \/api\/((apps|projects)\/\{id\}\/(env|previews|changes)|databases|templates|deployments\/\{id\}\/compare)\b.* \S*key$|suggested_variables\[\]\.key$/
/** Fields that sound so and are none, with the reason. */
const NO_SECRET: Record<string, string> = {
  csrf_token: 'is of use only to whoever has the cookie, and is asked for again whenever it is needed',
}

describe('what a narrowed key is shown', () => {
  const Secret = v.pipe(v.string(), SECRET)
  it.each([
    ['a field', v.object({ a: Secret, b: v.string() }), { a: 'x', b: 'y' }, { a: MASK, b: 'y' }],
    ['one that may be null', v.object({ a: v.nullable(Secret) }), { a: 'x' }, { a: MASK }],
    ['nothing in one', v.object({ a: v.nullable(Secret) }), { a: null }, { a: null }],
    [
      'a list',
      v.object({ data: v.array(v.object({ a: Secret })) }),
      { data: [{ a: 'x' }] },
      { data: [{ a: MASK }] },
    ],
    ['values of a record', v.record(v.string(), Secret), { a: 'x' }, { a: MASK }],
    [
      'a field of a choice',
      v.union([v.object({ b: v.number() }), v.object({ a: Secret })]),
      { a: 'x' },
      { a: MASK },
    ],
    ['a field in a pipe', v.pipe(v.object({ a: Secret }), v.title('T')), { a: 'x' }, { a: MASK }],
    ['one that is looked up', v.lazy(() => v.object({ a: Secret })), { a: 'x' }, { a: MASK }],
  ])('has a mask in %s', (_where, schema, answer, shown) => {
    expect(withoutSecrets(schema, answer as unknown)).toEqual(shown)
  })
})

describe('fields of the API that hold secrets', () => {
  it('are marked, so that the canary is put into each of them', () => {
    const last = (path: string) => path.split('.').at(-1)!.replace('[]', '')
    const unmarked = textFields(document).filter(
      ({ path, schema }) =>
        SOUNDS_SECRET.test(last(path)) && schema.format !== 'password' && !(last(path) in NO_SECRET),
    )
    expect(unmarked.map(nameOf).filter((name) => !NAMES_A_VARIABLE.test(name))).toEqual([])
  })
  it('are found on both sides, in references, choices and lists, and not where answers only show a mask', () => {
    const names = secretFields(document).map(nameOf)
    expect(names).toEqual(
      expect.arrayContaining([
        'POST /api/auth/login body password',
        'POST /api/auth/login answer data.token',
        'POST /api/auth/2fa/enable answer data.recovery_codes[]',
        'PUT /api/settings/acme body eab.hmac_key',
        'POST /api/domains body basic_auth.password',
        'POST /api/certificates body private_key',
        // Its name says nothing; what it holds are the passwords of services.
        'GET /api/services/{id}/credentials answer data.credentials[].value',
      ]),
    )
    expect(names.filter((name) => name.includes('answer data.smtp'))).toEqual([])
    expect(new Set(names).size).toBe(names.length)
  })
  it('give up what calls had in them, and what of it is secret', () => {
    const calls = [
      {
        method: 'POST',
        path: '/api/things/t1',
        status: 422,
        body: { inner: { list: ['a', 'b'] } },
        answer: undefined,
      },
      {
        method: 'POST',
        path: '/api/things/t2',
        status: 201,
        body: { inner: { list: ['c'] } },
        answer: { data: { key: 'ptr_id_rest_of_it' } },
      },
      {
        method: 'POST',
        path: '/api/things/t2/other',
        status: 201,
        body: { inner: { list: ['d'] } },
        answer: null,
      },
    ]
    const list = { operation: 'POST /api/things/{id}', side: 'body', path: 'inner.list[]' } as const
    expect([
      sentIn(calls, list),
      sentIn(calls, list, true),
      sentIn(calls, { ...list, side: 'answer', path: 'data.key' }).map(essenceOf),
    ]).toEqual([['a', 'b', 'c'], ['c'], ['rest_of_it']])
  })
})
