import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openEdgeFiles } from '#server/platform/ingress/files'
import type { Route } from '#server/platform/ingress/ingress'
import { PAGES_MAP } from '#server/platform/ingress/render/error-pages'
import { renderIngress, renderMap, renderMapPieces } from '#server/platform/ingress/render/render'
import { openEdgeStore } from '#server/platform/ingress/store'

const folder = mkdtempSync(join(tmpdir(), 'portreeve-edge-files-'))
afterAll(() => rmSync(folder, { recursive: true }))

const settings = { http_port: 80, https_port: 443, ipv6: false, trusted_proxies: [], owner_uid: 0 }
const page = (text: string) => text.repeat(15_000).slice(0, 15_000)
const routes = Array.from(
  { length: 20 },
  (_, n): Route => ({
    id: `dom_${n}`,
    hostnames: [`n${n}.test`],
    servers: [],
    error_pages: { 503: page(`<${n}>`), 404: page(`[${n}]`) },
  }),
)

test('others are served between the pieces of a file, and it is whole in the end', async () => {
  const files = await openEdgeFiles(join(folder, 'pieces'))
  let turns = 0
  const turn = () => {
    turns += 1
    turning = setImmediate(turn)
  }
  let turning = setImmediate(turn)
  const seen: number[] = []
  await files.write(
    new Map([
      [
        'maps/large.map',
        (function* () {
          for (let n = 0; n < 5; n += 1) {
            seen.push(turns)
            yield `${n}\n`
          }
        })(),
      ],
    ]),
  )
  clearImmediate(turning)
  expect(seen.every((at, n) => n === 0 || at > seen[n - 1]!)).toBe(true)
  expect(readFileSync(join(folder, 'pieces/maps/large.map'), 'utf8')).toBe('0\n1\n2\n3\n4\n')
})

test('a map is written in pieces that are short, however much is in it', () => {
  const state = { settings, pool_size: 64, routes: new Map(routes.map((route, n) => [n + 1, route])) }
  const text = renderIngress(state).get(PAGES_MAP)!
  const entries = text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' ') as [string, string])
  const pieces = [...renderMapPieces(entries)]
  expect(pieces.join('')).toBe(renderMap(entries))
  expect(pieces.length).toBeGreaterThan(10)
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(100_000)
})

test('what a change leaves on disk is what the routes say, in maps of many pieces too', async () => {
  const directory = join(folder, 'store')
  const store = await openEdgeStore({ directory, settings, check: async () => undefined })
  await store.put(new Map(routes.map((route, n) => [n + 1, route])))
  await store.put(new Map([[3, { ...routes[2]!, error_pages: { 503: page('other ') } }]]))
  const { routes: now, pool_size } = store.table
  expect(readFileSync(join(directory, PAGES_MAP), 'utf8').split('\n').sort()).toEqual(
    renderIngress({ settings, pool_size, routes: now }).get(PAGES_MAP)!.split('\n').sort(),
  )
})
