import { configError } from './runtime/config-error.ts'
import {
  CERTIFICATE_LIST,
  DEFAULT_CERTIFICATE,
  parseCertificateList,
  renderCertificateList,
  type StoredCertificate,
} from './certificates.ts'
import { type FileText, openEdgeFiles } from './files.ts'
import type { Route } from './ingress.ts'
import { IngressError } from './ingress.ts'
import { CHALLENGES_MAP, hostEntries, routeWord, ruleEntries, type MapEntry } from './render/maps.ts'
import { hostPathsOf } from './render/host-paths.ts'
import {
  collectEntries,
  parseShard,
  renderChallenges,
  renderIngress,
  renderMapPieces,
  renderShard,
  SHARD_SIZE,
  shardOf,
  shardPath,
  type EdgeSettings,
  type EdgeState,
} from './render/render.ts'
import type { RuntimeTarget } from './runtime/runtime.ts'
import { createSelfSigned } from './self-signed.ts'
import { createRouteTable, type RouteTable } from './render/route-table.ts'

/** The edge's files and the table of routes they were made from; the two are always equal. */
export interface EdgeStore {
  readonly table: RouteTable
  /** True when opening changed files that a running edge has read already. */
  stale: boolean
  /** What differs between these routes and the table, by backend; backends are assigned on the way. */
  differences(routes: Route[], pool_size: number): Map<number, Route | undefined>
  /** What should run after these changes, and what should run without them: as much of it as they touch. */
  targets(changes: ReadonlyMap<number, Route | undefined>): {
    after: RuntimeTarget
    before: RuntimeTarget
  }
  /** Sets backends in the table and the files. */
  put(changes: ReadonlyMap<number, Route | undefined>, pool_size?: number): Promise<void>
  /**
   * Asks the edge whether it would load these changes; throws an error that names the route when not. Nothing
   * is changed.
   */
  rehearse(changes: ReadonlyMap<number, Route | undefined>, pool_size: number): Promise<void>
  /** The whole table as what should run; entries that only the edge knows are to go. */
  everything(running_entries: string[]): RuntimeTarget
  /** By path. */
  readonly certificates: ReadonlyMap<string, StoredCertificate>
  /**
   * Puts these certificates on disk in place of those known, with the PEMs of the new ones by path. Files of
   * the old ones stay until `forget`.
   */
  putCertificates(certificates: StoredCertificate[], pems: ReadonlyMap<string, string>): Promise<void>
  forgetCertificates(paths: Iterable<string>): Promise<void>
  readPem(path: string): Promise<string>
  readonly challenges: ReadonlyMap<string, string>
  putChallenge(key: string, answer: string | undefined): Promise<void>
  /** The edge's complaint about the files, as an error for a user. */
  refusal(complaint: string): IngressError
}

/** Enough for most machines, so that theirs never needs a reload for a new app. */
const FIRST_POOL_SIZE = 4 * SHARD_SIZE
const DEFAULT_CERTIFICATE_DAYS = 3_650

/** Reads the folder; on the very first call the files of an edge without routes are put there. */
export async function openEdgeStore({
  directory,
  settings,
  check,
}: {
  directory: string
  settings: EdgeSettings
  check: (paths: string[]) => Promise<string | undefined>
}): Promise<EdgeStore> {
  const files = await openEdgeFiles(directory)
  const found = await files.readAll()
  const table = readTable(found)
  let certificates = new Map(
    parseCertificateList(found.get(CERTIFICATE_LIST) ?? '')
      .filter(({ path }) => found.has(path))
      .map((certificate) => [certificate.path, certificate]),
  )
  const challenges = new Map(
    (found.get(CHALLENGES_MAP) ?? '')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ') as [string, string]),
  )
  const state = (): EdgeState => ({
    settings,
    pool_size: table.pool_size,
    routes: table.routes,
    certificates,
    challenges,
  })
  const texts = renderIngress(state())
  if (!found.has(DEFAULT_CERTIFICATE))
    texts.set(
      DEFAULT_CERTIFICATE,
      createSelfSigned(['portreeve.invalid'], new Date(), DEFAULT_CERTIFICATE_DAYS),
    )
  const changed = new Map([...texts].filter(([path, text]) => found.get(path) !== text))
  const obsolete = [...found.keys()].filter(
    (path) => !texts.has(path) && path !== DEFAULT_CERTIFICATE && !certificates.has(path),
  )
  await files.write(changed)
  await files.remove(obsolete)
  const maps = collectEntries(table.routes)

  /** The files of backends that these changes touch, as they will be. */
  function renderChanges(
    changes: ReadonlyMap<number, Route | undefined>,
    pool_size: number,
  ): Map<string, string> {
    const routes = new Map(table.routes)
    for (const [number, route] of changes) {
      if (route) routes.set(number, route)
      else routes.delete(number)
    }
    const shards = new Set([...changes.keys()].map(shardOf))
    const [smaller, larger] = [Math.min(pool_size, table.pool_size), Math.max(pool_size, table.pool_size)]
    for (let shard = shardOf(smaller + 1); shard * SHARD_SIZE < larger; shard++) shards.add(shard)
    return new Map([...shards].map((shard) => [shardPath(shard), renderShard(shard, { pool_size, routes })]))
  }

  /** Changes the entries of maps; returns the maps that have become others, as files to be written once. */
  function changeMaps(entries: Iterable<readonly [string, string | undefined]>): Map<string, FileText> {
    const dirty = new Set<string>()
    for (const [entry, value] of entries) {
      const [path, key] = splitEntry(entry)
      const map = maps.get(path)
      if (!map || map.get(key) === value) continue
      if (value === undefined) map.delete(key)
      else map.set(key, value)
      dirty.add(path)
    }
    const piecesOf = (path: string) => ({
      [Symbol.iterator]: () => renderMapPieces(maps.get(path) ?? []),
    })
    return new Map([...dirty].map((path) => [path, piecesOf(path)]))
  }

  return {
    table,
    stale: changed.size > 0 || obsolete.length > 0,
    differences(routes, pool_size) {
      const changes = new Map<number, Route | undefined>()
      const desired = new Set(routes.map((route) => route.id))
      for (const [number, route] of table.routes) if (!desired.has(route.id)) changes.set(number, undefined)
      const vacant = vacancies(table, pool_size)
      for (const route of routes) {
        const number = table.numberOf(route.id) ?? vacant.next().value
        if (number !== undefined && JSON.stringify(table.routes.get(number)) !== JSON.stringify(route))
          changes.set(number, structuredClone(route))
      }
      return changes
    },
    targets(changes) {
      const entries = entriesAfter(table, changes)
      const now = [...entries.keys()].map((entry) => {
        const [path, key] = splitEntry(entry)
        return [entry, maps.get(path)?.get(key)] as const
      })
      return {
        after: { backends: changes, entries },
        before: {
          backends: new Map([...changes.keys()].map((number) => [number, table.routes.get(number)])),
          entries: new Map(now),
        },
      }
    },
    async put(changes, pool_size = table.pool_size) {
      const rendered = new Map<string, FileText>(renderChanges(changes, pool_size))
      for (const [path, text] of changeMaps(entriesAfter(table, changes))) rendered.set(path, text)
      await files.write(rendered)
      table.pool_size = pool_size
      for (const number of changes.keys()) table.put(number, undefined)
      for (const [number, route] of changes) table.put(number, route)
    },
    async rehearse(changes, pool_size) {
      const candidates = new Map(
        [...renderChanges(changes, pool_size)].map(([path, text]) => [
          path.replace('config/', 'candidate/'),
          text,
        ]),
      )
      await files.write(candidates)
      const complaint = await check(['config/00-edge.cfg', ...candidates.keys()])
      await files.remove(candidates.keys())
      if (complaint !== undefined) throw refusal(complaint, candidates)
    },
    everything(running_entries) {
      const backends = new Map<number, Route | undefined>()
      const entries = new Map<string, string | undefined>(running_entries.map((entry) => [entry, undefined]))
      for (let number = 1; number <= table.pool_size; number++) backends.set(number, table.routes.get(number))
      for (const [path, map] of maps) for (const [key, value] of map) entries.set(`${path} ${key}`, value)
      return { backends, entries }
    },
    get certificates() {
      return certificates
    },
    async putCertificates(next, pems) {
      await files.write(pems)
      certificates = new Map(next.map((certificate) => [certificate.path, certificate]))
      await files.write(new Map([[CERTIFICATE_LIST, renderCertificateList(certificates.values())]]))
    },
    forgetCertificates: (paths) => files.remove(paths),
    readPem: (path) => files.read(path),
    challenges,
    async putChallenge(key, answer) {
      if (answer === undefined) challenges.delete(key)
      else challenges.set(key, answer)
      await files.write(new Map([[CHALLENGES_MAP, renderChallenges(challenges)]]))
    },
    refusal: (complaint) => refusal(complaint, renderIngress(state())),
  }
}

const entryOf = ({ path, key }: MapEntry): string => `${path} ${key}`
function splitEntry(entry: string): [path: string, key: string] {
  const at = entry.indexOf(' ')
  return [entry.slice(0, at), entry.slice(at + 1)]
}

/**
 * Every entry that these changes touch, with its value after them. A name that several routes share is looked
 * at as a whole.
 */
function entriesAfter(
  table: RouteTable,
  changes: ReadonlyMap<number, Route | undefined>,
): Map<string, string | undefined> {
  const entries = new Map<string, string | undefined>()
  const added = new Map<string, [path: string, number: number][]>()
  for (const [number, route] of changes) {
    const known = table.routes.get(number)
    for (const entry of known ? ruleEntries(known, number) : []) entries.set(entryOf(entry), undefined)
    for (const [hostname] of known ? hostPathsOf(known) : []) added.set(hostname, added.get(hostname) ?? [])
    for (const [hostname, path] of route ? hostPathsOf(route) : [])
      added.set(hostname, [...(added.get(hostname) ?? []), [path, number]])
  }
  for (const [number, route] of changes)
    for (const entry of route ? ruleEntries(route, number) : []) entries.set(entryOf(entry), entry.value)
  const words = (
    places: Iterable<readonly [string, number]>,
    routes: ReadonlyMap<number, Route | undefined>,
  ) => new Map([...places].map(([place, number]) => [place, routeWord(routes.get(number), number)]))
  for (const [hostname, places] of added) {
    const now = [...table.backendsOf(hostname)]
    for (const entry of hostEntries(hostname, words(now, table.routes)))
      entries.set(entryOf(entry), undefined)
    const staying = words(
      now.filter(([, number]) => !changes.has(number)),
      table.routes,
    )
    for (const entry of hostEntries(hostname, new Map([...staying, ...words(places, changes)])))
      entries.set(entryOf(entry), entry.value)
  }
  return entries
}

function refusal(complaint: string, files: ReadonlyMap<string, string>): IngressError {
  return new IngressError(
    `The edge refused the new configuration and keeps the old one; ${configError(complaint, files)}`,
  )
}

function* vacancies(table: RouteTable, pool_size: number): Generator<number, undefined> {
  for (let number = 1; number <= pool_size; number++) if (!table.routes.has(number)) yield number
  return undefined
}

function readTable(found: ReadonlyMap<string, string>): RouteTable {
  const routes = new Map<number, Route>()
  let pool_size = 0
  for (let shard = 0; ; shard++) {
    const text = found.get(shardPath(shard))
    if (text === undefined) break
    const parsed = parseShard(text)
    pool_size += parsed.backends
    for (const [number, route] of parsed.routes) routes.set(number, route)
  }
  return createRouteTable(routes, Math.max(pool_size, FIRST_POOL_SIZE))
}
