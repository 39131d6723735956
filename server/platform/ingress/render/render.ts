import type { EdgeSettings } from '../edge-settings.ts'
import { renderBase } from './base.ts'
import { CERTIFICATE_LIST, renderCertificateList, type StoredCertificate } from '../certificates.ts'
import type { Route, RouteServer } from '../ingress.ts'
import {
  backendName,
  CHALLENGES_MAP,
  hostEntries,
  ROUTE_MAPS,
  routeWord,
  ruleEntries,
  type MapEntry,
} from './maps.ts'
import { hostPathsOf } from './host-paths.ts'

export type { EdgeSettings } from '../edge-settings.ts'

/** Everything the edge's files are made of. */
export interface EdgeState {
  settings: EdgeSettings
  /** How many backends exist, used or free. */
  pool_size: number
  /** The routes by the number of the backend that serves them, from 1. */
  routes: ReadonlyMap<number, Route>
  /** By path. Their files are put beside, since they are not made here. */
  certificates?: ReadonlyMap<string, StoredCertificate>
  /** ACME challenges: host name and path to the answer. */
  challenges?: ReadonlyMap<string, string>
}

/**
 * Backends are kept in files of this many, so that a change writes a few kilobytes however many routes there
 * are.
 */
export const SHARD_SIZE = 64
/** Where the edge sees its folder. */
export const EDGE_ROOT = '/edge'

/** The shard file that a backend is in. */
export const shardOf = (number: number): number => Math.floor((number - 1) / SHARD_SIZE)
export const shardPath = (shard: number): string =>
  `config/50-backends-${String(shard + 1).padStart(4, '0')}.cfg`

/**
 * A server's name says its address, so that what runs can be compared with what is wanted by names alone.
 * Servers are probed only when a route has several: with one there is nothing to fall back to, and a probe
 * could only make things worse.
 */
export function serverName(server: RouteServer, probed: boolean): string {
  return `${server.address}_${server.port}${probed ? '_probed' : ''}`
}

/**
 * Requests that an instance may have before it, open WebSockets too. One that has come to a standstill would else
 * collect them, for as long as it may take to answer, until the edge has no connection left for any other app.
 */
const MOST_BEFORE_ONE = 10_000

/** The part of a server line, or of an `add server` command, behind the name. */
export function serverArguments(server: RouteServer, probed: boolean): string {
  const address = server.address.includes(':') ? `[${server.address}]` : server.address
  return `${address}:${server.port} maxconn ${MOST_BEFORE_ONE}${probed ? ' check inter 2s downinter 1s fall 2 rise 1' : ''}`
}

/** The servers of a route by name. */
export function serversOf(route: Route | undefined): Map<string, { line: string; probed: boolean }> {
  const probed = (route?.servers.length ?? 0) > 1
  return new Map(
    (route?.servers ?? []).map((server) => [
      serverName(server, probed),
      { line: serverArguments(server, probed), probed },
    ]),
  )
}

/**
 * All files of the edge by their path in its folder: a pure function of the state. The route itself stands in
 * a comment, so that Portreeve knows after a restart what the edge serves without asking anybody.
 */
export function renderIngress(state: EdgeState): Map<string, string> {
  const files = renderBase(state.settings)
  for (let shard = 0; shard * SHARD_SIZE < state.pool_size; shard++)
    files.set(shardPath(shard), renderShard(shard, state))
  for (const [path, entries] of collectEntries(state.routes)) files.set(path, renderMap(entries))
  files.set(CHALLENGES_MAP, renderChallenges(state.challenges ?? new Map()))
  files.set(CERTIFICATE_LIST, renderCertificateList(state.certificates?.values() ?? []))
  return files
}

/** One file of backends. */
export function renderShard(shard: number, state: Pick<EdgeState, 'pool_size' | 'routes'>): string {
  let text = ''
  const last = Math.min((shard + 1) * SHARD_SIZE, state.pool_size)
  for (let number = shard * SHARD_SIZE + 1; number <= last; number++) {
    const route = state.routes.get(number)
    if (route) text += `# ${JSON.stringify(route)}\n`
    text += `backend ${backendName(number)} from app\n`
    for (const [name, server] of serversOf(route)) text += `  server ${name} ${server.line}\n`
  }
  return text
}

/** Reads back from a file of backends which routes are in it. */
export function parseShard(text: string): { backends: number; routes: Map<number, Route> } {
  const routes = new Map<number, Route>()
  let backends = 0
  let route: Route | undefined
  for (const line of text.split('\n')) {
    if (line.startsWith('# ')) route = JSON.parse(line.slice(2)) as Route
    const number = /^backend b(\d+) /.exec(line)?.[1]
    if (number === undefined) continue
    backends++
    if (route) routes.set(Number(number), route)
    route = undefined
  }
  return { backends, routes }
}

export const renderChallenges = (challenges: ReadonlyMap<string, string>): string => renderMap(challenges)

/** A file that a map is read from. */
export const renderMap = (entries: Iterable<readonly [string, string]>): string =>
  [...renderMapPieces(entries)].join('')

const PIECE = 65_536

/** The same in pieces: pages and redirects of many apps are many megabytes, and one change writes all of them. */
export function* renderMapPieces(entries: Iterable<readonly [string, string]>): Generator<string> {
  let text = ''
  for (const [key, value] of entries) {
    text += `${key} ${value}\n`
    if (text.length < PIECE) continue
    yield text
    text = ''
  }
  yield text
}

/** All entries of the maps of routes, by map. */
export function collectEntries(routes: ReadonlyMap<number, Route>): Map<string, Map<string, string>> {
  const maps = new Map<string, Map<string, string>>(ROUTE_MAPS.map((path) => [path, new Map()]))
  const hosts = new Map<string, Map<string, string>>()
  const put = ({ path, key, value }: MapEntry) => maps.get(path)?.set(key, value)
  for (const [number, route] of routes) {
    ruleEntries(route, number).forEach(put)
    for (const [hostname, place] of hostPathsOf(route))
      hosts.set(
        hostname,
        (hosts.get(hostname) ?? new Map<string, string>()).set(place, routeWord(route, number)),
      )
  }
  for (const [hostname, places] of hosts) hostEntries(hostname, places).forEach(put)
  return maps
}
