import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { makeResources } from '#test/support/resources'
import { readDefinitions } from '#test/support/routes'

const MARK = 'referencemark'
const UNKNOWN = '0'.repeat(20)
/** Fields whose name is not the noun of what they name. */
const NOUNS: Record<string, string[]> = {
  target_id: ['app', 'database', 'volume'],
  subject_id: ['app', 'database'],
  csr_id: ['certificate'],
  project_ids: ['project'],
}
/** What belongs to nobody's project: destinations and servers of the installation, users, ids of others' services. */
const NOT_OF_A_PROJECT = ['destination_id', 'node_id', 'user_id', 'chat_id', 'access_key_id']
const endpoints = await readDefinitions()

let api: TestApi
let document: any
/** What the caller's own project has, and what a project has that they are no member of, by noun. */
let own: Record<string, string>
let theirs: Record<string, string>
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  const admin = api.as('admin')
  const project = async (name: string) => (await admin.post('/api/projects', { name })).body.data.id as string
  const [own_id, other_id] = [await project('Own'), await project(`${MARK} project`)]
  const membership = { user_id: api.actor('owner').user_id, role: 'owner' }
  expect((await admin.post(`/api/projects/${own_id}/members`, membership)).status).toBe(201)
  own = await makeResources(api, 'admin', { project_id: own_id, mark: 'ownmark' })
  theirs = await makeResources(api, 'admin', { project_id: other_id, mark: MARK })
  document = (await admin.get('/api/openapi.json')).body
})
afterAll(() => api.close())

/** Every row but those that tell of requests, to see that nothing changed. */
function state(): string {
  const tables = api.kernel.db
    .sql(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
       AND name NOT IN ('audit_log', 'row_counts', 'idempotency') ORDER BY name`,
    )
    .pluck()
    .all() as string[]
  return JSON.stringify(tables.map((table) => api.kernel.db.sql(`SELECT * FROM ${table}`).all()))
}
function resolved(schema: any): any {
  let found = schema
  while (found?.$ref)
    found = found.$ref
      .split('/')
      .slice(1)
      .reduce((at: any, key: string) => at[key], document)
  return found
}
/** Paths of every field of a schema that takes an id. */
function idFields(schema: any, path: string[] = []): string[][] {
  const found = resolved(schema)
  if (!found || path.length > 6) return []
  const parts = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => found[key] ?? [])
  return [
    ...parts.flatMap((part: any) => idFields(part, path)),
    ...(found.items ? idFields(found.items, [...path, '0']) : []),
    ...Object.entries(found.properties ?? {}).flatMap(([name, property]) => [
      ...(/_ids?$/.test(name) && !NOT_OF_A_PROJECT.includes(name) ? [[...path, name]] : []),
      ...idFields(property, [...path, name]),
    ]),
  ]
}
const nounsOf = (field: string): string[] =>
  NOUNS[field] ?? [field === 'git_credential_id' ? 'git_credential' : field.replace(/_id$/, '')]

/** The example of a request with the caller's own things, and this id in one of its fields. */
function bodyWith(example: object, field: string[], id: string): object {
  const body: any = structuredClone(example)
  for (const name of Object.keys(body)) {
    const mine = /_id$/.test(name) && nounsOf(name).map((noun) => own[noun])[0]
    if (mine) body[name] = mine
  }
  let at = body
  for (const [depth, key] of field.slice(0, -1).entries()) {
    at[key] ??= field[depth + 1] === '0' ? [] : {}
    at = at[key]
  }
  at[field.at(-1)!] = field.at(-1)!.endsWith('_ids') ? [id] : id
  return body
}
/** Every field of every operation that takes an id, with how to send one in it. */
function references() {
  return endpoints.flatMap(({ method, path, definition }) => {
    const { scope } = definition
    const [param, noun] = typeof scope === 'object' ? [scope.param ?? 'id', scope.noun] : []
    const at = path.replace(/:(\w+)/g, (_all, name: string) =>
      name === param && own[noun!] ? own[noun!]! : `usr_${UNKNOWN}`,
    )
    const operation = document.paths[path.replace(/:(\w+)/g, '{$1}')]?.[method]
    const contents: any[] = Object.values(operation?.requestBody?.content ?? {})
    const fields = new Map(
      contents.flatMap(({ schema }) => idFields(schema)).map((one) => [one.join('.'), one]),
    )
    const in_body = [...fields.values()].map((field) => ({
      name: `${method} ${path} ${field.join('.')}`,
      nouns: nounsOf(field.at(-1)!),
      send: (id: string) =>
        api.request(method.toUpperCase(), at, {
          as: 'owner',
          body: bodyWith(definition.example ?? {}, field, id),
        }),
    }))
    const queries = (operation?.parameters ?? [])
      .map(resolved)
      .filter((one: any) => one.in === 'query' && /_id$/.test(one.name))
      .map(({ name }: any) => ({
        name: `${method} ${path}?${name}`,
        nouns: nounsOf(name),
        send: (id: string) => api.request(method.toUpperCase(), `${at}?${name}=${id}`, { as: 'owner' }),
      }))
    return [...in_body, ...queries] as typeof in_body
  })
}

describe('T4: an id of another team is no id, in whatever field it is sent', () => {
  it('answers it like an unknown one, shows nothing of what it names, and binds nothing to it', async () => {
    const wrong: string[] = []
    let sent = 0
    for (const { name, nouns, send } of references())
      for (const noun of nouns) {
        const id = theirs[noun]!
        expect(id, `${name}: a fixture makes a ${noun}`).toBeTypeOf('string')
        const before = state()
        const foreign = await send(id)
        const bound = state() !== before && state().split(id).length > before.split(id).length
        const unknown_id = id.replace(/_.*$/, `_${UNKNOWN}`)
        const unknown = await send(unknown_id)
        const is_same =
          foreign.status === unknown.status &&
          (foreign.status < 300 ||
            foreign.text.replaceAll(id, '') === unknown.text.replaceAll(unknown_id, ''))
        if (!is_same || bound || foreign.text.includes(MARK))
          wrong.push(`${name}: ${foreign.status} ${foreign.text} | ${unknown.status} ${unknown.text}`)
        sent += 1
      }
    expect(wrong).toEqual([])
    expect(sent).toBeGreaterThan(40)
  })
})
