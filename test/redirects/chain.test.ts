import { describe, expect, it, vi } from 'vitest'
import type { Route, RouteRedirect } from '#server/platform/ingress/ingress'
import { findLoop } from '#server/redirects/chain'
import { createRouteIndex } from '#server/redirects/route-index'
import { matchRedirect } from '#server/platform/ingress/render/redirects'

const route = (id: string, hostname: string, path?: string): Route => ({
  id,
  app_id: 'app',
  hostnames: [hostname],
  servers: [],
  ...(path ? { path } : {}),
})
const answering = (routes: Route[], url: string) => createRouteIndex(routes).routeFor(new URL(url))?.id

describe('the route that answers an address', () => {
  const nested = [
    route('one', 'shop.example.com', '/a'),
    route('two', 'shop.example.com', '/a/b'),
    route('root', 'shop.example.com'),
  ]
  it.each([
    ['https://shop.example.com/a/b/c', 'two'],
    ['https://shop.example.com/a/c', 'one'],
    ['https://shop.example.com/ab', 'root'],
  ])('has the longest path that covers it: %s goes to %s, whatever the order', (url, id) => {
    expect([answering(nested, url), answering([...nested].reverse(), url)]).toEqual([id, id])
  })
  it('is none when the name has domains of its own but none for the path, even below a wildcard', () => {
    const routes = [route('all', '*.example.com'), route('shop', 'shop.example.com', '/a')]
    expect([
      answering(routes, 'https://shop.example.com/b'),
      answering(routes, 'https://shop.example.com/a'),
      answering(routes, 'https://blog.example.com/b'),
    ]).toEqual([undefined, 'shop', 'all'])
  })
})

const rule = (
  kind: RouteRedirect['kind'],
  from: string,
  to: string,
  id = `${kind} ${from}`,
): RouteRedirect => ({
  id,
  kind,
  from,
  to,
  status: 301,
  keep_query: true,
})

describe('the rule that answers a path', () => {
  const rules = [
    rule('prefix', '/a/b', '/1$1'),
    rule('exact', '/a/b/c', '/2'),
    rule('regex', '/a/(.*)', '/3/$1'),
    rule('prefix', '/a', '/4$1'),
    rule('exact', '/x', '/5'),
    rule('prefix', '/x/', '/6/$1'),
    rule('regex', '/(x|y)', '/7'),
    rule('prefix', '/', '/8/$1'),
    rule('exact', '/z', '/9'),
  ]
  const paths = [
    '/',
    '/a',
    '/a/',
    '/a/b',
    '/a/bc',
    '/a/b/c',
    '/a/c',
    '/ab',
    '/x',
    '/x/',
    '/x/y',
    '/y',
    '/z',
    '//a',
    '/a//b',
  ]
  it('is the one that is found by trying one rule after another, in any order of them', () => {
    for (let turn = 0; turn < rules.length; turn += 1) {
      for (const redirects of [
        [...rules.slice(turn), ...rules.slice(0, turn)],
        rules.slice(turn),
        rules.slice(turn).reverse(),
      ]) {
        const [one] = [{ ...route('one', 'a.test'), redirects }]
        const index = createRouteIndex([one!])
        for (const path of paths)
          expect([path, index.match(one!, path, 'q=1')]).toEqual([
            path,
            matchRedirect(redirects, path, 'q=1'),
          ])
      }
    }
  })
  it('costs nothing for the other rules: of thousands none is tried that stands elsewhere', () => {
    let looks = 0
    const redirects = Array.from({ length: 5_000 }, (_, at) =>
      Object.defineProperty(rule('exact', `/${at}`, '/new', `r_${at}`), 'to', {
        get() {
          looks += 1
          return '/new'
        },
        enumerable: true,
      }),
    )
    const one = { ...route('one', 'a.test'), redirects }
    expect(createRouteIndex([one]).match(one, '/4999', '')?.redirect.id).toBe('r_4999')
    expect(looks).toBeLessThan(10)
  })
  it('patterns of great cost match nothing once they have had their share', () => {
    const one = {
      ...route('one', 'a.test'),
      redirects: Array.from({ length: 200 }, (_, at) => rule('regex', `/.*a.*b${at}`, '/new')),
    }
    const index = createRouteIndex([one], 10_000_000)
    expect([
      index.match(one, `/${'a'.repeat(1_900)}`, ''),
      index.is_exhausted,
      index.match(one, '/ab7', ''),
    ]).toEqual([undefined, true, undefined])
  })
})

describe('loops among many rules', () => {
  const many = (last: string) =>
    Array.from({ length: 50 }, (_, at) => ({
      ...route(`d_${at}`, `h${at}.test`),
      redirects: Array.from({ length: 100 }, (_, n) =>
        rule('exact', `/${n}`, at === 49 && n === 99 ? last : `https://h${at + 1}.test/end`),
      ),
    }))
  it('are found wherever they are, and none where none is', () => {
    expect(findLoop(many('/end'))).toBeUndefined()
    expect(findLoop(many('https://h0.test/99'))?.ends).toBeUndefined()
    expect(findLoop([...many('/end').slice(0, 10), ...many('/99').slice(49)])?.ends).toBe('loop')
  })
  it('that a change makes are found however many rules there are', () => {
    const routes = [
      ...many('https://x.test/'),
      { ...route('x', 'x.test'), redirects: [rule('prefix', '/', 'https://h49.test/99', 'changed')] },
    ]
    expect(findLoop(routes, 'changed')?.ends).toBe('loop')
    // As for the domain whose rule it is.
    expect(findLoop(routes, 'x')?.ends).toBe('loop')
  })
  it('are looked for without asking patterns that begin otherwise, and never more than some ten thousand times', () => {
    const asked = vi.spyOn(RegExp.prototype, 'test')
    const lookThrough = (fromOf: (at: number) => string) => {
      asked.mockClear()
      const redirects = Array.from({ length: 1000 }, (_, at) => rule('regex', fromOf(at), '/new'))
      findLoop(Array.from({ length: 5 }, (_, at) => ({ ...route(`d_${at}`, `h${at}.test`), redirects })))
      return asked.mock.calls.length
    }
    try {
      expect(lookThrough((at) => `/${at}/([^/]+)`)).toBeLessThan(10_000)
      expect(lookThrough((at) => `/[a-z]+${at}`)).toBeLessThan(100_000)
    } finally {
      asked.mockRestore()
    }
  })
  it('are found from plain HTTP as well, also through the step to HTTPS', () => {
    const one = {
      ...route('one', 'a.test'),
      force_https: true,
      redirects: [rule('exact', '/a', 'http://a.test/a')],
    }
    expect(findLoop([one])?.ends).toBe('loop')
    expect(findLoop([{ ...one, force_https: false }])?.ends).toBe('loop')
  })

  const alternatives = Array.from({ length: 240 }, (_, at) => `/${at.toString(36)}`).join('|')
  it.each([
    [
      'paths of slashes',
      2,
      Array.from({ length: 1000 }, (_, at) => rule('exact', `${'/'.repeat(900)}${at}`, '/new')),
    ],
    [
      'prefixes of all lengths',
      2,
      Array.from({ length: 990 }, (_, at) => rule('prefix', '/'.repeat(at + 1), '/-$1')),
    ],
    ['patterns of hundreds of alternatives', 300, [rule('regex', alternatives, '/new')]],
    [
      'patterns that cost much on short paths',
      50,
      [
        ...Array.from({ length: 100 }, (_, at) => rule('regex', `/.{0,30}.{0,30}.*${at}q`, '/new')),
        ...Array.from({ length: 100 }, (_, at) => rule('exact', `/${'x'.repeat(60)}${at}`, '/new')),
      ],
    ],
    [
      'patterns that are long to read',
      100,
      Array.from({ length: 200 }, (_, at) => rule('regex', `/${'[^a]'.repeat(230)}${at}`, '/new')),
    ],
  ])('take a bounded time to be looked for, whatever the rules are: %s', (_what, domains, redirects) => {
    const routes = Array.from({ length: domains }, (_, at) => ({
      ...route(`d_${at}`, `h${at}.test`),
      redirects,
    }))
    const started = process.cpuUsage()
    findLoop(routes)
    expect(process.cpuUsage(started).user).toBeLessThan(1_000_000)
  })
})
