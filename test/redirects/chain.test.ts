import { describe, expect, it } from 'vitest'
import type { Route } from '#server/platform/ingress/ingress'
import { routeFor } from '#server/redirects/chain'

const route = (id: string, hostname: string, path?: string): Route => ({ id, app_id: 'app', hostnames: [hostname], servers: [], ...(path ? { path } : {}) })
const answering = (routes: Route[], url: string) => routeFor(routes, new URL(url))?.id

describe('the route that answers an address', () => {
  const nested = [route('one', 'shop.example.com', '/a'), route('two', 'shop.example.com', '/a/b'), route('root', 'shop.example.com')]
  it.each([
    ['https://shop.example.com/a/b/c', 'two'],
    ['https://shop.example.com/a/c', 'one'],
    ['https://shop.example.com/ab', 'root'],
  ])('has the longest path that covers it: %s goes to %s, whatever the order', (url, id) => {
    expect([answering(nested, url), answering([...nested].reverse(), url)]).toEqual([id, id])
  })
  it('is none when the name has domains of its own but none for the path, even below a wildcard', () => {
    const routes = [route('all', '*.example.com'), route('shop', 'shop.example.com', '/a')]
    expect([answering(routes, 'https://shop.example.com/b'), answering(routes, 'https://shop.example.com/a'), answering(routes, 'https://blog.example.com/b')]).toEqual([undefined, 'shop', 'all'])
  })
})
