import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AnyEndpoint } from '#server/http/definition'
import { createTags } from '#server/http/openapi-tags'
import { tagsOf } from '#server/kernel/compose'
import { MODULES } from '#server/modules'
import { readEndpoints, readRoutes, ROOT } from '#test/support/routes'

const { tags, tagOf } = createTags(tagsOf(MODULES))
interface Listed {
  group: string
  method: string
  path: string
  access: string
}
const listed: Listed[] = readFileSync(join(ROOT, 'test/fixtures/endpoints.tsv'), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [group = '', method = '', path = '', access = ''] = line.split('\t')
    return { group, method, path, access }
  })
interface Served {
  name: string
  method: string
  path: string
  file: string
  definition: AnyEndpoint
}
let served: Served[]
beforeAll(async () => {
  served = await Promise.all(
    readEndpoints().map(async ({ method, path, file, load }) => ({
      name: `${method.toUpperCase()} ${path}`,
      method,
      path,
      file,
      definition: (await load()).default.definition,
    })),
  )
})

describe('every endpoint', () => {
  it('is made by endpoint()', () => {
    expect(served.filter(({ definition }) => definition === undefined).map(({ file }) => file)).toEqual([])
  })
  it('is in the list of endpoints with the same access and group, and nothing else is served', () => {
    const wrong = served.flatMap(({ name, path, definition }) => {
      const planned = listed.find((one) => `${one.method} ${one.path}` === name)
      if (!planned) return [`${name} is not in the list`]
      if (planned.access !== definition.access)
        return [`${name} asks for ${definition.access}, the list says ${planned.access}`]
      return planned.group === tagOf(path)
        ? []
        : [`${name} is in ${tagOf(path)}, the list says ${planned.group}`]
    })
    expect(wrong).toEqual([])
  })
  it('of the groups auth, apps, deployments, system basics and openapi is there', () => {
    const groups = new Set(['apps', 'deployments', 'openapi'])
    const missing = listed.filter(
      (one) => groups.has(one.group) && !served.some(({ name }) => name === `${one.method} ${one.path}`),
    )
    expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([])
  })
  it('says what it does: a summary of one line, and a description', () => {
    const silent = served.filter(
      ({ definition }) =>
        !/^[A-Z].{4,99}[^.]$/.test(definition.summary) ||
        !(definition.description && definition.description.length > 15),
    )
    expect(silent.map(({ name }) => name)).toEqual([])
  })
  it('types its answer', () => {
    expect(
      served
        .filter(({ definition }) => !definition.response && !definition.media_types)
        .map(({ name }) => name),
    ).toEqual([])
  })
  it('names where its project comes from when its path names a resource', () => {
    const open = served.filter(
      ({ path, definition }) =>
        path.includes(':') &&
        definition.scope === undefined &&
        ['viewer', 'developer', 'owner'].includes(definition.access),
    )
    expect(open.map(({ name }) => name).filter((name) => !INSTALLATION_WIDE.has(name))).toEqual([])
  })
  it('types the parameters of its path', () => {
    const open = served.filter(({ path, definition }) => {
      const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1]!)
      const entries = Object.keys((definition.params as { entries?: object } | undefined)?.entries ?? {})
      return names.some((name) => !entries.includes(name)) || entries.some((name) => !names.includes(name))
    })
    expect(open.map(({ name }) => name)).toEqual([])
  })
  it('with a body shows an example that its own schema accepts, and refuses unknown fields', () => {
    const wrong = served
      .filter(({ definition }) => definition.body)
      .filter(({ definition }) => {
        const schema = definition.body as v.GenericSchema
        if (!v.safeParse(schema, definition.example).success) return true
        return v.safeParse(schema, { ...(definition.example as object), field_that_is_not_one: 1 }).success
      })
    expect(wrong.map(({ name }) => name)).toEqual([])
  })
  it('that changes something does not use GET, and one that creates answers 201', () => {
    expect(
      served.filter(({ method, definition }) => method === 'get' && definition.body).map(({ name }) => name),
    ).toEqual([])
    expect(
      served
        .filter(({ method, definition }) => method !== 'post' && definition.status === 201)
        .map(({ name }) => name),
    ).toEqual([])
  })
  it('that answers with a list answers with a page of it; lines of a log are none', () => {
    const entriesOf = (schema: unknown) => Object.keys((schema as { entries?: object })?.entries ?? {})
    const lists = served.filter(({ definition }) => {
      const { data } =
        (definition.response as unknown as { entries?: Record<string, { type: string }> })?.entries ?? {}
      return definition.status !== 201 && data?.type === 'array'
    })
    const whole = lists.filter(
      ({ definition }) =>
        !['total', 'page', 'per_page', 'pages'].every((name) =>
          entriesOf(definition.response).includes(name),
        ) || !['page', 'per_page'].every((name) => entriesOf(definition.query).includes(name)),
    )
    expect(whole.map(({ name }) => name).filter((name) => !name.endsWith('/logs'))).toEqual([])
    expect(lists.length).toBeGreaterThan(40)
  })
  it('has a group with a description', () => {
    const known = new Set(tags.map((tag) => tag.name))
    expect(listed.filter(({ group }) => !known.has(group)).map(({ group }) => group)).toEqual([])
    expect(listed.filter(({ group, path }) => tagOf(path) !== group).map(({ path }) => path)).toEqual([])
  })
})

/** Their subject may belong to the installation as a whole, so that the service decides who sees it. */
const INSTALLATION_WIDE = new Set([
  'GET /api/system/jobs/:id',
  // Built-in rules belong to no project.
  'PUT /api/monitoring/alerts/:id',
  'DELETE /api/monitoring/alerts/:id',
  // Templates are shipped with the product.
  'GET /api/templates/:slug',
  'GET /api/templates/:slug/compose',
  // Servers belong to no project.
  'GET /api/nodes/:id',
  'GET /api/nodes/:id/health',
  'GET /api/nodes/:id/instances',
])

describe('every file below routes/', () => {
  it('serves one route with one method; only the WebSocket has none', () => {
    const routes = readRoutes()
    const names = routes.map(({ method, path }) => `${method} ${path}`)
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
    expect(routes.filter(({ method }) => method === undefined).map(({ path }) => path)).toEqual(['/api/ws'])
    expect(routes.filter(({ file }) => /\.(test|spec)\./.test(file))).toEqual([])
  })
})
