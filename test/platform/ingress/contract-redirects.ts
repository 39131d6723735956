import { describe, expect, test } from 'vitest'
import type { RouteRedirect } from '#server/platform/ingress/ingress'
import { ask } from './client.ts'
import { type ContractBench, route } from './contract-harness.ts'

/** What every edge promises of the redirects of a route. */
export function redirectContract(harness: ContractBench): void {
  describe('redirects', () => {
    const rule = (
      kind: RouteRedirect['kind'],
      from: string,
      to: string,
      more: Partial<RouteRedirect> = {},
    ): RouteRedirect => ({ id: 'rule', kind, from, to, status: 301, keep_query: false, ...more })
    const sends = async (path: string, redirects: RouteRedirect[]) => {
      await harness.ingress.setRoute({
        ...route('r_1', ['redirects.test'], (await harness.app('app')).server),
        redirects,
      })
      const answer = await ask(harness.edge, 'redirects.test', { path })
      return answer.status === 200 ? answer.seen.url : `${answer.status} ${answer.headers.location}`
    }

    test.each<[string, string, RouteRedirect[], string]>([
      ['an exact path', '/old?a=b', [rule('exact', '/old', '/new')], '301 /new'],
      [
        'an exact path with the query kept',
        '/old?a=b',
        [rule('exact', '/old', '/new', { keep_query: true, status: 302 })],
        '302 /new?a=b',
      ],
      [
        'a query behind a query, in front of a fragment',
        '/old?a=b',
        [rule('exact', '/old', '/new?x=y#z', { keep_query: true })],
        '301 /new?x=y&a=b#z',
      ],
      [
        'no query to keep',
        '/old',
        [rule('exact', '/old', 'https://else.test', { keep_query: true, status: 307 })],
        '307 https://else.test',
      ],
      ['an exact path does not match below', '/old/x', [rule('exact', '/old', '/new')], '/old/x'],
      ['an exact path does not match another case', '/Old', [rule('exact', '/old', '/new')], '/Old'],
      [
        'a prefix with its rest',
        '/old/x/y',
        [rule('prefix', '/old', '/new$1', { status: 308 })],
        '308 /new/x/y',
      ],
      ['a prefix by itself', '/old', [rule('prefix', '/old', '/new$1')], '301 /new'],
      ['a prefix ends with a segment', '/older', [rule('prefix', '/old', '/new$1')], '/older'],
      ['a prefix that ends with a slash', '/old/x', [rule('prefix', '/old/', '/new?to=$1')], '301 /new?to=x'],
      [
        'every path to another host',
        '/a/b',
        [rule('prefix', '/', 'https://else.test/$1')],
        '301 https://else.test/a/b',
      ],
      [
        'a regular expression over the whole path',
        '/p/12/x',
        [rule('regex', '/p/(\\d+)/(.*)', '/q/$2/$1')],
        '301 /q/x/12',
      ],
      [
        'a regular expression that would match within',
        '/a/p/12',
        [rule('regex', '/p/(\\d+)', '/q')],
        '/a/p/12',
      ],
      ['alternatives stay within the whole path', '/ax', [rule('regex', '/a|/b', '/q')], '/ax'],
      ['a group that did not take part', '/a', [rule('regex', '/a(b)?(c)?', '/q-$1-$2-$3')], '301 /q---'],
      [
        'a group behind one that did not take part',
        '/a-d',
        [rule('regex', '/a(b)?-(c)?([\\](d]+)', '/q-$1-$2-$3')],
        '301 /q---d',
      ],
      [
        'groups within groups and escaped brackets',
        '/(x)/yz',
        [rule('regex', '/\\((x)\\)/((?:y)(z))', '/$1/$2/$3')],
        '301 /x/yz/z',
      ],
      [
        'the first rule that matches',
        '/x',
        [rule('regex', '/y', '/1'), rule('regex', '/.', '/2'), rule('exact', '/x', '/3')],
        '301 /2',
      ],
      [
        'odd characters in the target',
        '/x',
        [rule('exact', '/x', '/a%20b?%[src]=$HOME&\'quote"|;\\')],
        '301 /a%20b?%[src]=$HOME&\'quote"|;\\',
      ],
      [
        'what was sent encoded stays encoded',
        '/o/%0d%0aSet-Cookie:x',
        [rule('prefix', '/o', '/n$1')],
        '301 /n/%0d%0aSet-Cookie:x',
      ],
      [
        'nothing sent becomes another host: slashes',
        '/o//evil.test/',
        [rule('prefix', '/o', '$1')],
        '301 /evil.test/',
      ],
      [
        'nothing sent becomes another host: an address',
        '/go/https://evil.test',
        [rule('regex', '/go/(.*)', '$1')],
        '301 /https://evil.test',
      ],
      [
        'nothing sent becomes another host: a longer name',
        '/o.evil.test',
        [rule('regex', '/o(.*)', 'https://else.test$1')],
        '301 https://else.test/.evil.test',
      ],
      [
        'nothing sent becomes another host: a user',
        '/o@evil.test',
        [rule('regex', '/o(.*)', 'https://else.test$1')],
        '301 https://else.test/@evil.test',
      ],
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
      await expect(
        harness.ingress.setRoute({ ...route('r_1', ['a.test']), redirects: patterns }),
      ).rejects.toThrow('it has more than 200 redirects with a regular expression')
    })

    test('redirects answer while the app is not running', async () => {
      await harness.ingress.setRoute({
        ...route('r_1', ['redirects.test']),
        redirects: [rule('exact', '/old', '/new')],
      })
      expect(await ask(harness.edge, 'redirects.test', { path: '/old' })).toMatchObject({
        status: 301,
        headers: { location: '/new' },
      })
      expect((await ask(harness.edge, 'redirects.test', { path: '/' })).status).toBe(503)
    })

    test.each<[string, Partial<RouteRedirect>]>([
      ['a line break in the target', { to: '/a\r\nSet-Cookie: x' }],
      ['a space in the path', { from: '/a b' }],
      ['a relative path', { from: 'a' }],
      ['a target without a scheme', { to: 'evil.test' }],
      ['a target that changes the host', { to: '//evil.test' }],
      ['a script as target', { to: 'javascript:alert(1)' }],
      ['a host made of what was sent', { to: 'https://$1' }],
      ['a host that goes on behind what was sent', { to: 'https://a$1.test/' }],
      ['a status that is none', { status: 200 as 301 }],
      ['a broken pattern', { kind: 'regex', from: '(' }],
      ['a pattern that closes the group it is in', { kind: 'regex', from: 'a)|(?:b' }],
      ['a pattern with options of its own', { kind: 'regex', from: '(*LIMIT_MATCH=1)a' }],
      ['a pattern with a back-reference', { kind: 'regex', from: '/(a)\\1' }],
      ['a pattern with a named group', { kind: 'regex', from: '/(?<a>b)' }],
      ['a target too long', { to: `/${'"'.repeat(9_000)}` }],
    ])('%s is refused', async (_what, wrong) => {
      await expect(
        harness.ingress.setRoute({
          ...route('r_1', ['a.test']),
          redirects: [{ ...rule('exact', '/a', '/b'), ...wrong }],
        }),
      ).rejects.toThrow(
        /^The route of r_1 cannot be set: (a redirect|the (path|target|pattern) of a redirect)/,
      )
    })
  })
}
