import { describe, expect, test } from 'vitest'
import type { Route } from '#server/platform/ingress/ingress'
import type { TestApp } from './app.ts'
import { ask } from './client.ts'
import { type ContractBench, route } from './contract-harness.ts'

/** What every edge promises of several routes under one name, and of aliases. */
export function pathContract(harness: ContractBench): void {
  describe('several routes under one name', () => {
    const at = (id: string, path: string | undefined, app_of: TestApp, more: Partial<Route> = {}): Route => ({
      id,
      hostnames: ['paths.test'],
      path,
      servers: [app_of.server],
      ...more,
    })
    const served = async (path: string, hostname = 'paths.test') => {
      const answer = await ask(harness.edge, hostname, { path })
      return answer.status === 200 ? `${answer.seen.app} ${answer.seen.url}` : answer.status
    }

    test('the longest path wins, at whole segments only, and the query does not count', async () => {
      const [root, api, deep] = [
        await harness.app('root'),
        await harness.app('api'),
        await harness.app('deep'),
      ]
      await harness.ingress.setRoute(at('r_root', undefined, root))
      await harness.ingress.setRoute(at('r_api', '/api', api))
      await harness.ingress.setRoute(at('r_deep', '/api/v2/x', deep))
      expect([
        await served('/'),
        await served('/apix'),
        await served('/a/api'),
        await served('/?/api'),
      ]).toEqual(['root /', 'root /apix', 'root /a/api', 'root /?/api'])
      expect([
        await served('/api'),
        await served('/api/'),
        await served('/api?a=b'),
        await served('/api/v2'),
        await served('/api/v2/xy'),
      ]).toEqual(['api /api', 'api /api/', 'api /api?a=b', 'api /api/v2', 'api /api/v2/xy'])
      expect([await served('/api/v2/x'), await served('/api/v2/x/y?z')]).toEqual([
        'deep /api/v2/x',
        'deep /api/v2/x/y?z',
      ])
    })

    test('a path that no route serves answers 404, and wildcards have paths too', async () => {
      const [one, two] = [await harness.app('one'), await harness.app('two')]
      await harness.ingress.setRoute(at('r_1', '/one', one))
      await harness.ingress.setRoute({ ...at('r_2', '/two', two), hostnames: ['*.paths.test'] })
      expect([await served('/one'), await served('/two'), await served('/')]).toEqual(['one /one', 404, 404])
      expect([
        await served('/two/x', 'any.paths.test'),
        await served('/one', 'any.paths.test'),
        await served('/two', 'a.b.paths.test'),
      ]).toEqual(['two /two/x', 404, 404])
    })

    test('a path comes and goes without touching its neighbour; the last one left serves as if it had always been alone', async () => {
      const [root, api] = [await harness.app('root'), await harness.app('api')]
      await harness.ingress.setRoute(at('r_root', '/', root))
      await harness.ingress.setRoute(at('r_api', '/api', api))
      expect(await served('/api')).toBe('api /api')
      await harness.ingress.setRoute(at('r_api', '/v2', api))
      expect([await served('/api'), await served('/v2')]).toEqual(['root /api', 'api /v2'])
      await harness.ingress.removeRoute('r_api')
      expect([await served('/v2'), await served('/')]).toEqual(['root /v2', 'root /'])
      await harness.ingress.setRoute(at('r_api', '/api', api))
      await harness.ingress.removeRoute('r_root')
      expect([await served('/api/x'), await served('/')]).toEqual(['api /api/x', 404])
    })

    test('a route may take its path off before the app sees the request', async () => {
      const [root, api] = [await harness.app('root'), await harness.app('api')]
      await harness.ingress.setRoute(at('r_root', '/', root, { strip_path: true }))
      await harness.ingress.setRoute(at('r_api', '/api', api, { strip_path: true }))
      expect([
        await served('/api'),
        await served('/api/'),
        await served('/api/x//y?q=/api'),
        await served('/api?q'),
      ]).toEqual(['api /', 'api /', 'api /x//y?q=/api', 'api /?q'])
      expect(await served('/other')).toBe('root /other')
      await harness.ingress.setRoute(at('r_api', '/api', api))
      expect(await served('/api/x')).toBe('api /api/x')
    })

    test('the same name and path twice is refused, and the first stays', async () => {
      const [one, two] = [await harness.app('one'), await harness.app('two')]
      await harness.ingress.setRoute(at('r_1', '/api', one))
      await expect(harness.ingress.setRoute(at('r_2', '/api', two))).rejects.toThrow(
        'paths.test/api already belongs to r_1',
      )
      await harness.ingress.apply({
        routes: [at('r_1', '/api', one), at('r_2', '/api', two), at('r_3', '/', two)],
      })
      expect((await harness.ingress.status()).refused).toMatchObject([{ route_id: 'r_2' }])
      expect([await served('/api'), await served('/')]).toEqual(['one /api', 'two /'])
    })

    test.each([
      'api',
      '/api/',
      '//api',
      '/a b',
      '/../x',
      '/a/./b',
      '/a\nb',
      '/a%20b',
      '/a;b',
      '/a|b',
      '/a!h',
      `/${'a'.repeat(500)}`,
      '',
    ])('the path %j is refused', async (path) => {
      await expect(harness.ingress.setRoute({ ...route('r_1', ['a.test']), path })).rejects.toThrow(
        'The route of r_1 cannot be set: its path',
      )
    })
  })

  describe('aliases', () => {
    test('a request for an alias is sent to the same address at the name that is served', async () => {
      const one = await harness.app('one')
      await harness.ingress.setRoute({
        ...route('r_1', ['example.test'], one.server),
        aliases: { 'www.example.test': 'example.test' },
      })
      for (const path of ['/', '/a//b/%2e%2e?c=d&e=/', '//evil.test/']) {
        expect(await ask(harness.edge, `WWW.example.test:${harness.edge.port}`, { path })).toMatchObject({
          status: 308,
          headers: { location: `http://example.test:${harness.edge.port}${path}` },
        })
      }
      expect((await ask(harness.edge, 'example.test')).seen.app).toBe('one')
    })

    test('an alias ends with the route that has it, and cannot be the name of another route', async () => {
      const [one, two] = [await harness.app('one'), await harness.app('two')]
      await harness.ingress.setRoute({
        ...route('r_1', ['example.test'], one.server),
        aliases: { 'www.example.test': 'example.test' },
      })
      await expect(harness.ingress.setRoute(route('r_2', ['www.example.test'], two.server))).rejects.toThrow(
        'www.example.test already belongs to r_1',
      )
      await harness.ingress.setRoute(route('r_1', ['example.test'], one.server))
      expect((await ask(harness.edge, 'www.example.test')).status).toBe(404)
      await harness.ingress.setRoute(route('r_2', ['www.example.test'], two.server))
      expect((await ask(harness.edge, 'www.example.test')).seen.app).toBe('two')
    })

    test.each<[string, Record<string, string>]>([
      ['a line break', { 'www.a.test': 'a.test\nx' }],
      ['a wildcard', { '*.a.test': 'a.test' }],
      ['the name itself', { 'a.test': 'b.test' }],
      ['a circle', { 'b.test': 'c.test', 'c.test': 'b.test' }],
    ])('an alias with %s is refused', async (_what, aliases) => {
      await expect(harness.ingress.setRoute({ ...route('r_1', ['a.test']), aliases })).rejects.toThrow(
        /^The route of r_1 cannot be set/,
      )
    })
  })
}
