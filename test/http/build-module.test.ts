import { join } from 'node:path'
import type { Nitro } from 'nitropack/types'
import { describe, expect, it } from 'vitest'
import { buildDocuments } from '../../scripts/build-api-document.ts'
import endpoints from '#server/http/build-module'
import { buildDocument } from '#server/http/openapi'
import { documentFor } from '#server/http/openapi-text'
import { tagsOf } from '#server/kernel/compose'
import { MODULES } from '#server/modules'
import { createRouteTable, segmentsOf } from '#server/http/route-table'
import { parse } from 'yaml'
import { readDefinitions, readEndpoints, ROOT } from '#test/support/routes'

type Scanned = { route?: string; method?: string; handler: string; middleware?: boolean }
/** As much of the framework as the module touches. */
function build(scanned: Scanned[]) {
  const hooks: (() => void)[] = []
  const options = {
    rootDir: ROOT,
    virtual: {} as Record<string, () => string | Promise<string>>,
    handlers: [] as Scanned[],
  }
  endpoints({
    scannedHandlers: scanned,
    options,
    hooks: { hook: (_name: string, fn: () => void) => hooks.push(fn) },
  } as unknown as Nitro)
  for (const hook of hooks) hook()
  return options
}
const LIST: Scanned = {
  route: '/api/apps',
  method: 'get',
  handler: '/x/routes/api/apps/index.get.ts',
}

describe('the build', () => {
  it('lists the endpoints with path and method, and gives every GET its HEAD', () => {
    const { virtual, handlers } = build([
      LIST,
      { route: '/api/apps', method: 'post', handler: '/x/routes/api/apps/index.post.ts' },
      { route: '/api/ws', handler: '/x/routes/api/ws.ts' },
      { route: '', middleware: true, handler: '/x/server/middleware/a.ts' },
    ])
    expect(virtual['#endpoints']!()).toContain(
      '{ path: "/api/apps", method: "post", load: () => import("/x/routes/api/apps/index.post.ts") }',
    )
    expect(virtual['#endpoints']!()).not.toContain('/api/ws')
    expect(handlers.map(({ route, method }) => `${method} ${route}`)).toEqual(['head /api/apps'])
  })
  it('carries the migrations of the checkout', () => {
    expect(build([]).virtual['#migrations']!()).toContain('0001_kernel.sql')
  })
  it.each([
    [
      'two files for one route',
      [LIST, { ...LIST, handler: '/x/routes/api/apps.get.ts' }],
      'are the same route: get /api/apps',
    ],
    [
      'a name without a method',
      [{ route: '/api/apps', handler: '/x/routes/api/apps.ts' }],
      'names no method. Call it e.g. apps.get.ts',
    ],
    [
      'a test among the routes',
      [{ route: '/api/apps.test', method: 'get', handler: '/x/routes/api/apps.test.get.ts' }],
      'is a test below routes/',
    ],
  ])('stops on %s', (_what, scanned, message) => {
    expect(() => build(scanned)).toThrow(message)
  })
})

describe('the API document of a build', () => {
  it('says of every route what its definition says, with the address of the installation put in later', async () => {
    const found = readEndpoints().map(({ path, method, file }) => ({
      route: path,
      method,
      handler: join(ROOT, file),
    }))
    const texts = await buildDocuments(ROOT, found, '1.2.3')
    const public_url = 'https://console.example.com/?$&'
    const facts = { version: '1.2.3', tags: tagsOf(MODULES), public_url }
    const expected = JSON.stringify(buildDocument(await readDefinitions(), facts))
    expect(documentFor(texts.json, 'json', public_url)).toBe(expected)
    expect(parse(documentFor(texts.yaml, 'yaml', public_url))).toEqual(JSON.parse(expected))
    expect(JSON.parse(documentFor(texts.json, 'json', undefined)).servers[0].url).toBe('/')
  })
})

describe('the methods of a path', () => {
  const table = createRouteTable([
    { path: '/api/certificates/:id', method: 'get' },
    { path: '/api/certificates/:id/renew', method: 'post' },
    { path: '/api/certificates/csr', method: 'post' },
    { path: '/api/apps/:id/env/:key', method: 'put' },
    { path: '/api/openapi.json', method: 'get' },
  ])
  it.each([
    ['/api/certificates/crt_1', ['GET', 'HEAD']],
    ['/api/certificates/csr', ['POST']],
    ['/api/certificates/crt_1/renew', ['POST']],
    ['/api/certificates/csr/renew', []],
    ['/api/apps/a/env/B', ['PUT']],
    ['/api/apps/a/env', []],
    ['/api/openapi.json/', ['GET', 'HEAD']],
    ['/api', []],
    ['/api/certificates/a/b', []],
  ])('%s', (path, methods) => {
    expect(table.methods(segmentsOf(path))).toEqual(methods)
  })
})
