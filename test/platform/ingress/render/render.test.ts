import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { configError } from '#server/platform/ingress/runtime/config-error'
import type { Route } from '#server/platform/ingress/ingress'
import { backendName } from '#server/platform/ingress/render/maps'
import {
  parseShard,
  renderIngress,
  renderShard,
  SHARD_SIZE,
  shardOf,
  shardPath,
  type EdgeSettings,
} from '#server/platform/ingress/render/render'

/** `show` lists the files that the case is about; the expected part has each below its path. */
interface Case {
  show: string[]
  pool_size?: number
  settings?: Partial<EdgeSettings>
  routes?: Record<string, Route>
}

const folder = import.meta.dirname
const SEPARATOR = '\n----------\n'
const settings: EdgeSettings = {
  http_port: 80,
  https_port: 443,
  ipv6: true,
  trusted_proxies: [],
  owner_uid: 0,
}

test.each(readdirSync(folder).filter((name) => name.endsWith('.txt')))('configuration: %s', (name) => {
  const [input = '', expected] = readFileSync(join(folder, name), 'utf8').split(SEPARATOR)
  const { show, pool_size = 2, settings: changes, routes = {} } = parse(input) as Case
  const files = renderIngress({
    settings: { ...settings, ...changes },
    pool_size,
    routes: new Map(Object.entries(routes).map(([number, route]) => [Number(number), route])),
  })
  expect(show.map((path) => `=== ${path}\n${files.get(path) ?? '(missing)\n'}`).join('')).toBe(expected)
})

const route: Route = {
  id: 'app_x',
  hostnames: ['x.test'],
  servers: [{ address: '10.0.0.1', port: 80 }],
}

test('what a file of backends says about its routes is read back as it was written', () => {
  const routes = new Map([
    [1, route],
    [SHARD_SIZE, { ...route, id: 'app_y', hostnames: ['*.y.test'], servers: [] }],
  ])
  expect(parseShard(renderShard(0, { pool_size: SHARD_SIZE * 2, routes }))).toEqual({
    backends: SHARD_SIZE,
    routes,
  })
})

test('a change of one route touches one small file, however many routes there are', () => {
  const routes = new Map(
    Array.from({ length: 10_000 }, (_, index) => [index + 1, { ...route, id: `app_${index}` }]),
  )
  const state = { settings, pool_size: 10_048, routes }
  const before = renderIngress(state)
  routes.set(5_000, { ...route, servers: [{ address: '10.0.0.2', port: 80 }] })
  const changed = [...renderIngress(state)].filter(([path, text]) => before.get(path) !== text)
  expect(changed.map(([path]) => path)).toEqual([shardPath(shardOf(5_000))])
  expect(changed[0]?.[1].length).toBeLessThan(20_000)
})

test('a complaint of the edge names the route in whose part it stands', () => {
  const text = renderShard(0, { pool_size: 3, routes: new Map([[2, route]]) })
  const files = new Map([['candidate/50-backends-0001.cfg', text]])
  const line = text.split('\n').findIndex((found) => found.startsWith('  server')) + 1
  expect(
    configError(
      `[NOTICE]   (1) : haproxy version is 3.0\n[ALERT]    (1) : config : parsing [/edge/candidate/50-backends-0001.cfg:${line}] : 'server 10.0.0.1_80' : bad address.\n`,
      files,
    ),
  ).toBe("the route of app_x: 'server 10.0.0.1_80' : bad address.")
  expect(
    configError(
      '[ALERT]    (1) : config : parsing [/edge/candidate/50-backends-0001.cfg:1]: unknown keyword.',
      files,
    ),
  ).toBe('unknown keyword.')
  expect(configError('[ALERT]    (1) : [haproxy.main()] Cannot fork.', files)).toBe(
    '[haproxy.main()] Cannot fork.',
  )
})

test('a backend has one name, whatever it serves', () => {
  expect([backendName(1), backendName(64), backendName(100_000)]).toEqual(['b00001', 'b00064', 'b100000'])
})
