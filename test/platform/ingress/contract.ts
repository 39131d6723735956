import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { EdgeRequest, Ingress, Route, RouteRedirect, RouteServer, RouteTraffic } from '#server/platform/ingress/ingress'
import { startApp, type TestApp } from './app.ts'
import { ask, until, upgrade, type Address } from './client.ts'

const route = (id: string, hostnames: string[], ...servers: RouteServer[]): Route => ({ id, hostnames, servers })

/** What every edge promises, the one in memory as the real one. */
export function ingressContract(name: string, open: () => Promise<{ ingress: Ingress; edge: Address; close: () => Promise<void> }>): void {
  describe(name, () => {
    let ingress: Ingress
    let edge: Address
    let close: () => Promise<void>
    const apps: TestApp[] = []
    const app = async (app_name: string) => {
      const started = await startApp(app_name)
      apps.push(started)
      return started
    }
    beforeAll(async () => {
      ({ ingress, edge, close } = await open())
      await ingress.ensure()
    })
    afterEach(async () => {
      await ingress.apply({ routes: [] })
      for (const started of apps.splice(0)) await started.kill()
    })
    afterAll(() => close())

    test('a request reaches the app of its host name, however the client writes the name', async () => {
      const [one, two] = [await app('one'), await app('two')]
      await ingress.setRoute(route('app_1', ['one.test', 'www.one.test'], one.server))
      await ingress.setRoute(route('app_2', ['two.test'], two.server))
      for (const hostname of ['one.test', 'ONE.test', 'one.test:8080', 'one.test.', 'www.one.test']) expect((await ask(edge, hostname)).seen.app).toBe('one')
      expect((await ask(edge, 'two.test')).seen.app).toBe('two')
    })

    test('a wildcard takes the names that no route names itself, one label deep', async () => {
      const [any, own] = [await app('any'), await app('own')]
      await ingress.setRoute(route('app_any', ['*.wild.test'], any.server))
      await ingress.setRoute(route('app_own', ['own.wild.test'], own.server))
      expect((await ask(edge, 'some.wild.test')).seen.app).toBe('any')
      expect((await ask(edge, 'own.wild.test')).seen.app).toBe('own')
      for (const hostname of ['wild.test', 'a.b.wild.test']) expect((await ask(edge, hostname)).status).toBe(404)
    })

    test('every request of an app is told once with what it was, those for nobody are not', async () => {
      const heard: EdgeRequest[] = []
      const ended = new AbortController()
      ingress.followRequests({ signal: ended.signal, onRequests: (requests) => void heard.push(...requests) })
      await ingress.setRoute({ ...route('dom_1', ['told.test'], (await app('told')).server), app_id: 'app_told' })
      await ask(edge, 'told.test', { path: '/some/path?x=1', headers: { 'user-agent': 'tester/1' } })
      await ask(edge, 'nobody.test')
      await ask(edge, 'TOLD.test:80', { method: 'POST', body: Buffer.from('hello') })
      await until('both are told', () => heard.length >= 2)
      ended.abort()
      expect(heard).toMatchObject([
        { app_id: 'app_told', host: 'told.test', method: 'GET', target: '/some/path?x=1', version: 'HTTP/1.1', status: 200, secure: false, user_agent: 'tester/1', server: expect.stringMatching(/^127\.0\.0\.1:\d+$/), end: '--' },
        { app_id: 'app_told', host: 'told.test', method: 'POST', target: '/', status: 200 },
      ])
      expect(new Set(heard.map((request) => request.id)).size).toBe(2)
      expect(Math.abs((heard[0]?.at_ms ?? 0) - Date.now())).toBeLessThan(60_000)
    })

    test('an unknown host name gets a page that says nothing about any app', async () => {
      await ingress.setRoute(route('app_secret', ['secret-name.test'], (await app('secret')).server))
      const answer = await ask(edge, 'other.test')
      expect(answer.status).toBe(404)
      expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'text/html; charset=utf-8' })
      expect(answer.text + JSON.stringify(answer.headers)).not.toMatch(/secret|haproxy/i)
    })

    test('an app without a server gets a page that says so, and serves as soon as it has one', async () => {
      await ingress.setRoute(route('app_1', ['idle.test']))
      const answer = await ask(edge, 'idle.test')
      expect(answer).toMatchObject({ status: 503, headers: { 'cache-control': 'no-store', 'content-type': 'text/html; charset=utf-8' } })
      expect(answer.text).toContain('The app is not running')
      await ingress.setRoute(route('app_1', ['idle.test'], (await app('awake')).server))
      expect((await ask(edge, 'idle.test')).seen.app).toBe('awake')
    })

    test('after a switch new requests go to the new server, and the old one finishes what it has', async () => {
      const [old, fresh] = [await app('old'), await app('fresh')]
      await ingress.setRoute(route('app_1', ['app.test'], old.server))
      const in_flight = ask(edge, 'app.test', { path: '/hold' })
      await until('the old server has the request', () => old.held() === 1)
      await ingress.setRoute(route('app_1', ['app.test'], fresh.server))
      for (let count = 0; count < 10; count++) expect((await ask(edge, 'app.test')).seen.app).toBe('fresh')
      expect(await ingress.activeConnections(old.server.address, old.server.port)).toBe(1)
      old.release()
      expect((await in_flight).text).toBe('old done\n')
      await until('the old server holds nothing', async () => (await ingress.activeConnections(old.server.address, old.server.port)) === 0)
    })

    test('a WebSocket stays on the old server and is counted until it ends', async () => {
      const [old, fresh] = [await app('old'), await app('fresh')]
      await ingress.setRoute(route('app_1', ['ws.test'], old.server))
      const socket = await upgrade(edge, 'ws.test')
      await ingress.setRoute(route('app_1', ['ws.test'], fresh.server))
      expect(await socket.say('hello')).toBe('old:hello')
      expect(await ingress.activeConnections(old.server.address, old.server.port)).toBe(1)
      const second = await upgrade(edge, 'ws.test')
      expect(await second.say('hello')).toBe('fresh:hello')
      second.close()
      socket.close()
      await until('the old server holds nothing', async () => (await ingress.activeConnections(old.server.address, old.server.port)) === 0)
    })

    test('an answer streams: its first part arrives while the app still works on the rest', async () => {
      const streaming = await app('streaming')
      await ingress.setRoute(route('app_1', ['stream.test'], streaming.server))
      const first = Promise.withResolvers<string>()
      const answer = ask(edge, 'stream.test', { path: '/stream', onChunk: first.resolve })
      expect(await first.promise).toBe('first\n')
      streaming.release()
      expect((await answer).text).toBe('first\nstreaming done\n')
    })

    test('a large request body arrives complete', async () => {
      await ingress.setRoute(route('app_1', ['upload.test'], (await app('upload')).server))
      const body = Buffer.alloc(5_000_000, 'x')
      expect((await ask(edge, 'upload.test', { method: 'POST', body })).seen.body_bytes).toBe(body.length)
      const chunked = await ask(edge, 'upload.test', { method: 'POST', body, headers: { 'transfer-encoding': 'chunked' } })
      expect(chunked.seen.body_bytes).toBe(body.length)
    })

    test('the replicas of an app share its requests', async () => {
      const replicas = [await app('a'), await app('b'), await app('c')]
      await ingress.setRoute(route('app_1', ['many.test'], ...replicas.map((replica) => replica.server)))
      const answers = await Promise.all(Array.from({ length: 30 }, () => ask(edge, 'many.test')))
      expect(new Set(answers.map((answer) => answer.seen.app))).toEqual(new Set(['a', 'b', 'c']))
    })

    test('a removed route answers 404, and removing it again is fine', async () => {
      await ingress.setRoute(route('app_1', ['gone.test', '*.gone.test'], (await app('gone')).server))
      await ingress.removeRoute('app_1')
      expect((await ask(edge, 'gone.test')).status).toBe(404)
      expect((await ask(edge, 'x.gone.test')).status).toBe(404)
      await ingress.removeRoute('app_1')
      await ingress.removeRoute('never-there')
    })

    test('a host name that a route gives up is free for another one', async () => {
      const [one, two] = [await app('one'), await app('two')]
      await ingress.setRoute(route('app_1', ['a.test', 'b.test'], one.server))
      await ingress.setRoute(route('app_1', ['a.test'], one.server))
      expect((await ask(edge, 'b.test')).status).toBe(404)
      await ingress.setRoute(route('app_2', ['b.test'], two.server))
      expect((await ask(edge, 'a.test')).seen.app).toBe('one')
      expect((await ask(edge, 'b.test')).seen.app).toBe('two')
    })

    test('a name that belongs to another route is refused, and both routes stay as they were', async () => {
      const [one, two] = [await app('one'), await app('two')]
      await ingress.setRoute(route('app_1', ['mine.test'], one.server))
      await ingress.setRoute(route('app_2', ['two.test'], two.server))
      await expect(ingress.setRoute(route('app_2', ['two.test', 'mine.test'], two.server))).rejects.toThrow('mine.test already belongs to app_1')
      expect((await ask(edge, 'mine.test')).seen.app).toBe('one')
      expect((await ask(edge, 'two.test')).seen.app).toBe('two')
    })

    test.each<[string, Partial<Route>]>([
      ['a name with a line break', { hostnames: ['a.test\nserver evil 10.0.0.1:80'] }],
      ['an upper-case name', { hostnames: ['A.test'] }],
      ['a wildcard in the middle', { hostnames: ['a.*.test'] }],
      ['an address as a name', { hostnames: ['127.0.0.1'] }],
      ['a name of 254 characters', { hostnames: [`${'a'.repeat(60)}.`.repeat(5).slice(0, 254)] }],
      ['a name listed twice', { hostnames: ['a.test', 'a.test'] }],
      ['a server that is a name', { servers: [{ address: 'localhost', port: 80 }] }],
      ['a server with a zone', { servers: [{ address: 'fe80::1%eth0', port: 80 }] }],
      ['a server without a port', { servers: [{ address: '127.0.0.1', port: 0 }] }],
      ['an id with a space', { id: 'app 1' }],
    ])('%s is refused and changes nothing', async (_what, wrong) => {
      await ingress.setRoute(route('app_1', ['a.test'], (await app('one')).server))
      await expect(ingress.setRoute({ ...route('app_1', ['other.test']), ...wrong })).rejects.toThrow(/^The route of /)
      expect((await ask(edge, 'a.test')).seen.app).toBe('one')
    })

    describe('several routes under one name', () => {
      const at = (id: string, path: string | undefined, app_of: TestApp, more: Partial<Route> = {}): Route => ({ id, hostnames: ['paths.test'], path, servers: [app_of.server], ...more })
      const served = async (path: string, hostname = 'paths.test') => {
        const answer = await ask(edge, hostname, { path })
        return answer.status === 200 ? `${answer.seen.app} ${answer.seen.url}` : answer.status
      }

      test('the longest path wins, at whole segments only, and the query does not count', async () => {
        const [root, api, deep] = [await app('root'), await app('api'), await app('deep')]
        await ingress.setRoute(at('r_root', undefined, root))
        await ingress.setRoute(at('r_api', '/api', api))
        await ingress.setRoute(at('r_deep', '/api/v2/x', deep))
        expect([await served('/'), await served('/apix'), await served('/a/api'), await served('/?/api')]).toEqual(['root /', 'root /apix', 'root /a/api', 'root /?/api'])
        expect([await served('/api'), await served('/api/'), await served('/api?a=b'), await served('/api/v2'), await served('/api/v2/xy')]).toEqual(['api /api', 'api /api/', 'api /api?a=b', 'api /api/v2', 'api /api/v2/xy'])
        expect([await served('/api/v2/x'), await served('/api/v2/x/y?z')]).toEqual(['deep /api/v2/x', 'deep /api/v2/x/y?z'])
      })

      test('a path that no route serves answers 404, and wildcards have paths too', async () => {
        const [one, two] = [await app('one'), await app('two')]
        await ingress.setRoute(at('r_1', '/one', one))
        await ingress.setRoute({ ...at('r_2', '/two', two), hostnames: ['*.paths.test'] })
        expect([await served('/one'), await served('/two'), await served('/')]).toEqual(['one /one', 404, 404])
        expect([await served('/two/x', 'any.paths.test'), await served('/one', 'any.paths.test'), await served('/two', 'a.b.paths.test')]).toEqual(['two /two/x', 404, 404])
      })

      test('a path comes and goes without touching its neighbour; the last one left serves as if it had always been alone', async () => {
        const [root, api] = [await app('root'), await app('api')]
        await ingress.setRoute(at('r_root', '/', root))
        await ingress.setRoute(at('r_api', '/api', api))
        expect(await served('/api')).toBe('api /api')
        await ingress.setRoute(at('r_api', '/v2', api))
        expect([await served('/api'), await served('/v2')]).toEqual(['root /api', 'api /v2'])
        await ingress.removeRoute('r_api')
        expect([await served('/v2'), await served('/')]).toEqual(['root /v2', 'root /'])
        await ingress.setRoute(at('r_api', '/api', api))
        await ingress.removeRoute('r_root')
        expect([await served('/api/x'), await served('/')]).toEqual(['api /api/x', 404])
      })

      test('a route may take its path off before the app sees the request', async () => {
        const [root, api] = [await app('root'), await app('api')]
        await ingress.setRoute(at('r_root', '/', root, { strip_path: true }))
        await ingress.setRoute(at('r_api', '/api', api, { strip_path: true }))
        expect([await served('/api'), await served('/api/'), await served('/api/x//y?q=/api'), await served('/api?q')]).toEqual(['api /', 'api /', 'api /x//y?q=/api', 'api /?q'])
        expect(await served('/other')).toBe('root /other')
        await ingress.setRoute(at('r_api', '/api', api))
        expect(await served('/api/x')).toBe('api /api/x')
      })

      test('the same name and path twice is refused, and the first stays', async () => {
        const [one, two] = [await app('one'), await app('two')]
        await ingress.setRoute(at('r_1', '/api', one))
        await expect(ingress.setRoute(at('r_2', '/api', two))).rejects.toThrow('paths.test/api already belongs to r_1')
        await ingress.apply({ routes: [at('r_1', '/api', one), at('r_2', '/api', two), at('r_3', '/', two)] })
        expect((await ingress.status()).refused).toMatchObject([{ route_id: 'r_2' }])
        expect([await served('/api'), await served('/')]).toEqual(['one /api', 'two /'])
      })

      test.each(['api', '/api/', '//api', '/a b', '/../x', '/a/./b', '/a\nb', '/a%20b', '/a;b', '/a|b', '/a!h', `/${'a'.repeat(500)}`, ''])('the path %j is refused', async (path) => {
        await expect(ingress.setRoute({ ...route('r_1', ['a.test']), path })).rejects.toThrow('The route of r_1 cannot be set: its path')
      })
    })

    describe('aliases', () => {
      test('a request for an alias is sent to the same address at the name that is served', async () => {
        const one = await app('one')
        await ingress.setRoute({ ...route('r_1', ['example.test'], one.server), aliases: { 'www.example.test': 'example.test' } })
        for (const path of ['/', '/a//b/%2e%2e?c=d&e=/', '//evil.test/']) {
          expect(await ask(edge, `WWW.example.test:${edge.port}`, { path })).toMatchObject({ status: 308, headers: { location: `http://example.test:${edge.port}${path}` } })
        }
        expect((await ask(edge, 'example.test')).seen.app).toBe('one')
      })

      test('an alias ends with the route that has it, and cannot be the name of another route', async () => {
        const [one, two] = [await app('one'), await app('two')]
        await ingress.setRoute({ ...route('r_1', ['example.test'], one.server), aliases: { 'www.example.test': 'example.test' } })
        await expect(ingress.setRoute(route('r_2', ['www.example.test'], two.server))).rejects.toThrow('www.example.test already belongs to r_1')
        await ingress.setRoute(route('r_1', ['example.test'], one.server))
        expect((await ask(edge, 'www.example.test')).status).toBe(404)
        await ingress.setRoute(route('r_2', ['www.example.test'], two.server))
        expect((await ask(edge, 'www.example.test')).seen.app).toBe('two')
      })

      test.each<[string, Record<string, string>]>([
        ['a line break', { 'www.a.test': 'a.test\nx' }], ['a wildcard', { '*.a.test': 'a.test' }], ['the name itself', { 'a.test': 'b.test' }], ['a circle', { 'b.test': 'c.test', 'c.test': 'b.test' }],
      ])('an alias with %s is refused', async (_what, aliases) => {
        await expect(ingress.setRoute({ ...route('r_1', ['a.test']), aliases })).rejects.toThrow(/^The route of r_1 cannot be set/)
      })
    })

    describe('redirects', () => {
      const rule = (kind: RouteRedirect['kind'], from: string, to: string, more: Partial<RouteRedirect> = {}): RouteRedirect => ({ id: 'rule', kind, from, to, status: 301, keep_query: false, ...more })
      const sends = async (path: string, redirects: RouteRedirect[]) => {
        await ingress.setRoute({ ...route('r_1', ['redirects.test'], (await app('app')).server), redirects })
        const answer = await ask(edge, 'redirects.test', { path })
        return answer.status === 200 ? answer.seen.url : `${answer.status} ${answer.headers.location}`
      }

      test.each<[string, string, RouteRedirect[], string]>([
        ['an exact path', '/old?a=b', [rule('exact', '/old', '/new')], '301 /new'],
        ['an exact path with the query kept', '/old?a=b', [rule('exact', '/old', '/new', { keep_query: true, status: 302 })], '302 /new?a=b'],
        ['a query behind a query, in front of a fragment', '/old?a=b', [rule('exact', '/old', '/new?x=y#z', { keep_query: true })], '301 /new?x=y&a=b#z'],
        ['no query to keep', '/old', [rule('exact', '/old', 'https://else.test', { keep_query: true, status: 307 })], '307 https://else.test'],
        ['an exact path does not match below', '/old/x', [rule('exact', '/old', '/new')], '/old/x'],
        ['an exact path does not match another case', '/Old', [rule('exact', '/old', '/new')], '/Old'],
        ['a prefix with its rest', '/old/x/y', [rule('prefix', '/old', '/new$1', { status: 308 })], '308 /new/x/y'],
        ['a prefix by itself', '/old', [rule('prefix', '/old', '/new$1')], '301 /new'],
        ['a prefix ends with a segment', '/older', [rule('prefix', '/old', '/new$1')], '/older'],
        ['a prefix that ends with a slash', '/old/x', [rule('prefix', '/old/', '/new?to=$1')], '301 /new?to=x'],
        ['every path to another host', '/a/b', [rule('prefix', '/', 'https://else.test/$1')], '301 https://else.test/a/b'],
        ['a regular expression over the whole path', '/p/12/x', [rule('regex', '/p/(\\d+)/(.*)', '/q/$2/$1')], '301 /q/x/12'],
        ['a regular expression that would match within', '/a/p/12', [rule('regex', '/p/(\\d+)', '/q')], '/a/p/12'],
        ['alternatives stay within the whole path', '/ax', [rule('regex', '/a|/b', '/q')], '/ax'],
        ['a group that did not take part', '/a', [rule('regex', '/a(b)?(c)?', '/q-$1-$2-$3')], '301 /q---'],
        ['a group behind one that did not take part', '/a-d', [rule('regex', '/a(b)?-(c)?([\\](d]+)', '/q-$1-$2-$3')], '301 /q---d'],
        ['groups within groups and escaped brackets', '/(x)/yz', [rule('regex', '/\\((x)\\)/((?:y)(z))', '/$1/$2/$3')], '301 /x/yz/z'],
        ['the first rule that matches', '/x', [rule('regex', '/y', '/1'), rule('regex', '/.', '/2'), rule('exact', '/x', '/3')], '301 /2'],
        ['odd characters in the target', '/x', [rule('exact', '/x', "/a%20b?%[src]=$HOME&'quote\"|;\\")], "301 /a%20b?%[src]=$HOME&'quote\"|;\\"],
        ['what was sent encoded stays encoded', '/o/%0d%0aSet-Cookie:x', [rule('prefix', '/o', '/n$1')], '301 /n/%0d%0aSet-Cookie:x'],
        ['nothing sent becomes another host: slashes', '/o//evil.test/', [rule('prefix', '/o', '$1')], '301 /evil.test/'],
        ['nothing sent becomes another host: an address', '/go/https://evil.test', [rule('regex', '/go/(.*)', '$1')], '301 /https://evil.test'],
        ['nothing sent becomes another host: a longer name', '/o.evil.test', [rule('regex', '/o(.*)', 'https://else.test$1')], '301 https://else.test/.evil.test'],
        ['nothing sent becomes another host: a user', '/o@evil.test', [rule('regex', '/o(.*)', 'https://else.test$1')], '301 https://else.test/@evil.test'],
      ])('%s', async (_what, path, redirects, expected) => {
        expect(await sends(path, redirects)).toBe(expected)
      })

      test('many rules keep their order, and one that is taken out no longer matches', async () => {
        const many = Array.from({ length: 300 }, (_, index) => rule('exact', `/${index}`, `/to-${index}`))
        expect(await sends('/299', many)).toBe('301 /to-299')
        expect(await sends('/299', many.slice(0, 299))).toBe('/299')
        expect(await sends('/7', [rule('prefix', '/', '/all'), ...many])).toBe('301 /all')
        expect(await sends('/7', [])).toBe('/7')
      })

      test('more patterns than a request could wait for are refused', async () => {
        const patterns = Array.from({ length: 201 }, (_, index) => rule('regex', `/${index}`, '/x'))
        await expect(ingress.setRoute({ ...route('r_1', ['a.test']), redirects: patterns })).rejects.toThrow('it has more than 200 redirects with a regular expression')
      })

      test('redirects answer while the app is not running', async () => {
        await ingress.setRoute({ ...route('r_1', ['redirects.test']), redirects: [rule('exact', '/old', '/new')] })
        expect(await ask(edge, 'redirects.test', { path: '/old' })).toMatchObject({ status: 301, headers: { location: '/new' } })
        expect((await ask(edge, 'redirects.test', { path: '/' })).status).toBe(503)
      })

      test.each<[string, Partial<RouteRedirect>]>([
        ['a line break in the target', { to: '/a\r\nSet-Cookie: x' }], ['a space in the path', { from: '/a b' }], ['a relative path', { from: 'a' }], ['a target without a scheme', { to: 'evil.test' }],
        ['a target that changes the host', { to: '//evil.test' }], ['a script as target', { to: 'javascript:alert(1)' }], ['a host made of what was sent', { to: 'https://$1' }],
        ['a host that goes on behind what was sent', { to: 'https://a$1.test/' }], ['a status that is none', { status: 200 as 301 }], ['a broken pattern', { kind: 'regex', from: '(' }],
        ['a pattern that closes the group it is in', { kind: 'regex', from: 'a)|(?:b' }], ['a pattern with options of its own', { kind: 'regex', from: '(*LIMIT_MATCH=1)a' }], ['a pattern with a back-reference', { kind: 'regex', from: '/(a)\\1' }],
        ['a pattern with a named group', { kind: 'regex', from: '/(?<a>b)' }], ['a target too long', { to: `/${'"'.repeat(9_000)}` }],
      ])('%s is refused', async (_what, wrong) => {
        await expect(ingress.setRoute({ ...route('r_1', ['a.test']), redirects: [{ ...rule('exact', '/a', '/b'), ...wrong }] })).rejects.toThrow(/^The route of r_1 cannot be set: (a redirect|the (path|target|pattern) of a redirect)/)
      })
    })

    test('apply replaces everything, leaves out what is wrong and says why', async () => {
      const [one, two] = [await app('one'), await app('two')]
      await ingress.setRoute(route('app_old', ['old.test'], one.server))
      await ingress.apply({ routes: [
        route('app_1', ['one.test'], one.server),
        route('app_2', ['two.test', 'one.test'], two.server),
        route('app_3', ['bad name'], two.server),
        route('app_4', ['four.test'], two.server),
      ] })
      expect((await ask(edge, 'old.test')).status).toBe(404)
      expect((await ask(edge, 'one.test')).seen.app).toBe('one')
      expect((await ask(edge, 'two.test')).status).toBe(404)
      expect((await ask(edge, 'four.test')).seen.app).toBe('two')
      const { refused } = await ingress.status()
      expect(refused?.map(({ route_id }) => route_id)).toEqual(['app_2', 'app_3'])
      expect(refused?.[0]?.message).toContain('one.test already belongs to app_1')
    })

    test('traffic is counted per route and does not start again when servers change', async () => {
      const [one, two] = [await app('one'), await app('two')]
      await ingress.setRoute(route('app_count', ['count.test'], one.server))
      await ingress.setRoute(route('app_idle', ['uncounted.test']))
      for (let count = 0; count < 3; count++) await ask(edge, 'count.test')
      await ingress.setRoute(route('app_count', ['count.test'], two.server))
      await ask(edge, 'count.test', { method: 'POST', body: Buffer.alloc(10_000) })
      await ask(edge, 'uncounted.test')
      let traffic = new Map<string, RouteTraffic>()
      await until('the last request is counted', async () => {
        traffic = new Map((await ingress.traffic()).map((row) => [row.route_id, row]))
        return [...traffic.values()].reduce((sum, row) => sum + row.requests - row.sessions, 0) >= 5
      })
      expect(traffic.get('app_count')).toMatchObject({ requests: 4, errors_5xx: 0, sessions: 0 })
      expect(traffic.get('app_count')?.bytes_in).toBeGreaterThanOrEqual(10_000)
      expect(traffic.get('app_count')?.bytes_out).toBeGreaterThan(0)
      expect(traffic.get('app_idle')).toMatchObject({ requests: 1, errors_5xx: 1 })
    })

    test('an edge that runs says so with its version, and ensuring it again changes nothing', async () => {
      await ingress.setRoute(route('app_1', ['stays.test'], (await app('one')).server))
      await ingress.ensure()
      expect(await ingress.status()).toMatchObject({ running: true, version: expect.any(String) })
      expect((await ask(edge, 'stays.test')).seen.app).toBe('one')
    })
  })
}
