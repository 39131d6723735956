import { renderBase } from './render-base.ts'
import { CERTIFICATE_LIST, renderCertificateList, type StoredCertificate } from './certificates.ts'
import type { Route, RouteServer } from './ingress.ts'
import { APPS_MAP } from './render-log.ts'
import { renderRules } from './rules.ts'

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
export interface EdgeSettings {
  http_port: number
  https_port: number
  /** Also listen on IPv6. */
  ipv6: boolean
  /** Addresses and networks whose forwarding headers are believed. */
  trusted_proxies: string[]
  /** The user that Portreeve runs as, who may read the log of requests. */
  owner_uid: number
}

/** Backends are kept in files of this many, so that a change writes a few kilobytes however many routes there are. */
export const SHARD_SIZE = 64
/** Where the edge sees its folder. */
export const EDGE_ROOT = '/edge'
export const HOSTS_MAP = 'maps/hosts.map'
export const WILDCARDS_MAP = 'maps/wildcards.map'
export const FORCE_HTTPS_MAP = 'maps/force-https.map'
export const MAINTENANCE_MAP = 'maps/maintenance.map'
export const CHALLENGES_MAP = 'maps/challenges.map'
export const ROUTE_MAPS = [HOSTS_MAP, WILDCARDS_MAP, FORCE_HTTPS_MAP, MAINTENANCE_MAP, APPS_MAP]

/** The name of a backend: a number, because a backend outlives the route that it serves. */
export const backendName = (number: number): string => `b${String(number).padStart(5, '0')}`
/** The shard file that a backend is in. */
export const shardOf = (number: number): number => Math.floor((number - 1) / SHARD_SIZE)
export const shardPath = (shard: number): string => `config/50-backends-${String(shard + 1).padStart(4, '0')}.cfg`

/**
 * A server's name says its address, so that what runs can be compared with what is wanted by names alone. Servers are probed
 * only when a route has several: with one there is nothing to fall back to, and a probe could only make things worse.
 */
export function serverName(server: RouteServer, probed: boolean): string {
  return `${server.address}_${server.port}${probed ? '_probed' : ''}`
}

/** The part of a server line, or of an `add server` command, behind the name. */
export function serverArguments(server: RouteServer, probed: boolean): string {
  const address = server.address.includes(':') ? `[${server.address}]` : server.address
  return `${address}:${server.port}${probed ? ' check inter 2s downinter 1s fall 2 rise 1' : ''}`
}

/** The servers of a route by name. */
export function serversOf(route: Route | undefined): Map<string, { line: string; probed: boolean }> {
  const probed = (route?.servers.length ?? 0) > 1
  return new Map((route?.servers ?? []).map((server) => [serverName(server, probed), { line: serverArguments(server, probed), probed }]))
}

/**
 * All files of the edge by their path in its folder: a pure function of the state. The route itself stands in a comment, so
 * that Portreeve knows after a restart what the edge serves without asking anybody.
 */
export function renderIngress(state: EdgeState): Map<string, string> {
  const files = renderBase(state.settings)
  for (let shard = 0; shard * SHARD_SIZE < state.pool_size; shard++) files.set(shardPath(shard), renderShard(shard, state))
  for (const [path, text] of renderMaps(state.routes)) files.set(path, text)
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
    for (const line of renderRules(route)) text += `${line}\n`
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

/** An entry of a map that the edge looks things up in. */
export interface MapEntry { path: string; key: string; value: string }

/** Host name to backend, whole names and wildcards apart, and what is looked up by backend. */
export function mapEntries(route: Route, number: number): MapEntry[] {
  const value = backendName(number)
  const entries: MapEntry[] = route.hostnames.map((hostname) => hostname.startsWith('*.')
    ? { path: WILDCARDS_MAP, key: hostname.slice(2), value }
    : { path: HOSTS_MAP, key: hostname, value })
  if (route.force_https) entries.push({ path: FORCE_HTTPS_MAP, key: value, value: 'yes' })
  if (route.maintenance) entries.push({ path: MAINTENANCE_MAP, key: value, value: 'yes' })
  if (route.app_id !== undefined) entries.push({ path: APPS_MAP, key: value, value: route.app_id })
  return entries
}

export const renderChallenges = (challenges: ReadonlyMap<string, string>): string => [...challenges].map(([key, answer]) => `${key} ${answer}\n`).join('')

export function renderMaps(routes: ReadonlyMap<number, Route>): Map<string, string> {
  const texts = new Map(ROUTE_MAPS.map((path) => [path, '']))
  for (const [number, route] of routes) {
    for (const { path, key, value } of mapEntries(route, number)) texts.set(path, `${texts.get(path) ?? ''}${key} ${value}\n`)
  }
  return texts
}
