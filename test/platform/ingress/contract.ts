import { beforeAll, describe, expect, test } from 'vitest'
import type { EdgeRequest, Ingress, Route, RouteTraffic } from '#server/platform/ingress/ingress'
import { type Address, ask, until, upgrade } from './client.ts'
import { type OpenEdge, route, useEdge } from './contract-harness.ts'
import { pathContract } from './contract-paths.ts'
import { redirectContract } from './contract-redirects.ts'
import { wakeContract } from './contract-wakes.ts'

/** What every edge promises, the one in memory as the real one. */
export function ingressContract(name: string, open: OpenEdge): void {
  describe(name, () => {
    const harness = useEdge(open)
    let ingress: Ingress
    let edge: Address
    beforeAll(() => {
      ;({ ingress, edge } = harness)
    })
    const { app } = harness

    test('a request reaches the app of its host name, however the client writes the name', async () => {
      const [one, two] = [await app('one'), await app('two')]
      await ingress.setRoute(route('app_1', ['one.test', 'www.one.test'], one.server))
      await ingress.setRoute(route('app_2', ['two.test'], two.server))
      for (const hostname of ['one.test', 'ONE.test', 'one.test:8080', 'one.test.', 'www.one.test'])
        expect((await ask(edge, hostname)).seen.app).toBe('one')
      expect((await ask(edge, 'two.test')).seen.app).toBe('two')
    })

    test('a wildcard takes the names that no route names itself, one label deep', async () => {
      const [any, own] = [await app('any'), await app('own')]
      await ingress.setRoute(route('app_any', ['*.wild.test'], any.server))
      await ingress.setRoute(route('app_own', ['own.wild.test'], own.server))
      expect((await ask(edge, 'some.wild.test')).seen.app).toBe('any')
      expect((await ask(edge, 'own.wild.test')).seen.app).toBe('own')
      for (const hostname of ['wild.test', 'a.b.wild.test'])
        expect((await ask(edge, hostname)).status).toBe(404)
    })

    test('a wildcard takes only what can be a label: nothing that no line of the log could hold, or that ends a host', async () => {
      await ingress.setRoute(route('app_any', ['*.wild.test'], (await app('any')).server))
      expect((await ask(edge, `${'a'.repeat(63)}.wild.test`)).status).toBe(200)
      for (const label of ['a'.repeat(64), 'a'.repeat(5_000), 'evil/x', 'a?b', 'a b', 'a"b', ''])
        expect([label, (await ask(edge, `${label}.wild.test`)).status]).toEqual([
          label,
          expect.toSatisfy((status: number) => status === 404 || status === 400),
        ])
    })

    test('every request of an app is told once with what it was, those for nobody are not', async () => {
      const heard: EdgeRequest[] = []
      const ended = new AbortController()
      ingress.followRequests({
        signal: ended.signal,
        onRequests: (requests) => void heard.push(...requests),
      })
      await ingress.setRoute({
        ...route('dom_1', ['told.test'], (await app('told')).server),
        app_id: 'app_told',
      })
      await ask(edge, 'told.test', {
        path: '/some/path?x=1',
        headers: { 'user-agent': 'tester/1' },
      })
      await ask(edge, 'nobody.test')
      await ask(edge, 'TOLD.test:80', { method: 'POST', body: Buffer.from('hello') })
      await until('both are told', () => heard.length >= 2)
      ended.abort()
      expect(heard).toMatchObject([
        {
          app_id: 'app_told',
          host: 'told.test',
          method: 'GET',
          target: '/some/path?x=1',
          version: 'HTTP/1.1',
          status: 200,
          secure: false,
          user_agent: 'tester/1',
          server: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
          end: '--',
        },
        { app_id: 'app_told', host: 'told.test', method: 'POST', target: '/', status: 200 },
      ])
      expect(new Set(heard.map((request) => request.id)).size).toBe(2)
      expect(Math.abs((heard[0]?.at_ms ?? 0) - Date.now())).toBeLessThan(60_000)
    })

    test('an unknown host name gets a page that says nothing about any app', async () => {
      await ingress.setRoute(route('app_secret', ['secret-name.test'], (await app('secret')).server))
      const answer = await ask(edge, 'other.test')
      expect(answer.status).toBe(404)
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-store',
        'content-type': 'text/html; charset=utf-8',
      })
      expect(answer.text + JSON.stringify(answer.headers)).not.toMatch(/secret|haproxy/i)
    })

    test('an app without a server gets a page that says so, and serves as soon as it has one', async () => {
      await ingress.setRoute(route('app_1', ['idle.test']))
      const answer = await ask(edge, 'idle.test')
      expect(answer).toMatchObject({
        status: 503,
        headers: { 'cache-control': 'no-store', 'content-type': 'text/html; charset=utf-8' },
      })
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
      await until(
        'the old server holds nothing',
        async () => (await ingress.activeConnections(old.server.address, old.server.port)) === 0,
      )
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
      await until(
        'the old server holds nothing',
        async () => (await ingress.activeConnections(old.server.address, old.server.port)) === 0,
      )
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
      const chunked = await ask(edge, 'upload.test', {
        method: 'POST',
        body,
        headers: { 'transfer-encoding': 'chunked' },
      })
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
      await expect(ingress.setRoute(route('app_2', ['two.test', 'mine.test'], two.server))).rejects.toThrow(
        'mine.test already belongs to app_1',
      )
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
      await expect(ingress.setRoute({ ...route('app_1', ['other.test']), ...wrong })).rejects.toThrow(
        /^The route of /,
      )
      expect((await ask(edge, 'a.test')).seen.app).toBe('one')
    })

    pathContract(harness)
    redirectContract(harness)
    wakeContract(harness)

    test('apply replaces everything, leaves out what is wrong and says why', async () => {
      const [one, two] = [await app('one'), await app('two')]
      await ingress.setRoute(route('app_old', ['old.test'], one.server))
      await ingress.apply({
        routes: [
          route('app_1', ['one.test'], one.server),
          route('app_2', ['two.test', 'one.test'], two.server),
          route('app_3', ['bad name'], two.server),
          route('app_4', ['four.test'], two.server),
        ],
      })
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
