import type { MasterCli } from './master-cli.ts'
import type { Route } from '../ingress.ts'
import { IngressError } from '../ingress.ts'
import { backendName, ROUTE_MAPS } from '../render/maps.ts'
import { EDGE_ROOT, serversOf } from '../render/render.ts'
import { parseMap, parseServers, parseStatistics, type RunningServer } from '../requests/statistics.ts'

/**
 * What should run: the routes of some backends, and some entries of maps by `<path> <key>`; those without a
 * value should not be there.
 */
export interface RuntimeTarget {
  backends: ReadonlyMap<number, Route | undefined>
  entries: ReadonlyMap<string, string | undefined>
}

/** Changes the running edge without a reload. */
export interface EdgeRuntime {
  /** Makes the running process equal to the target, by what it says itself that it runs. */
  sync(target: RuntimeTarget): Promise<void>
  /** Every entry that the running process has in the maps of routes. */
  entries(): Promise<string[]>
  activeConnections(address: string, port: number): Promise<number>
}

/** From so many backends or entries on, asking for everything at once is cheaper than for each. */
const MANY = 100
const MANY_ENTRIES = 3_000

export function createEdgeRuntime(cli: MasterCli): EdgeRuntime {
  /**
   * Where a worker has servers of an address, so that a deployment that waits for one does not make the edge
   * list all again and again.
   */
  const places = new Map<string, string[]>()

  async function readServers(target: RuntimeTarget): Promise<RunningServer[]> {
    if (target.backends.size === 0) return []
    if (target.backends.size > MANY) return parseServers(await cli.run(['show servers state']))
    const outputs = await cli.run(
      [...target.backends.keys()].map((number) => `show servers state ${backendName(number)}`),
    )
    return parseServers(outputs)
  }

  async function readMaps(): Promise<Map<string, string>> {
    const known = new Map<string, string>()
    for (const path of ROUTE_MAPS)
      for (const [key, value] of parseMap(await cli.run([`show map ${EDGE_ROOT}/${path}`])))
        known.set(`${path} ${key}`, value)
    return known
  }

  async function readEntries(target: RuntimeTarget): Promise<Map<string, string>> {
    if (target.entries.size > MANY_ENTRIES) return readMaps()
    const known = new Map<string, string>()
    const desired = [...target.entries.keys()]
    if (desired.length === 0) return known
    const answers = (await cli.run(desired.map((entry) => `get map ${EDGE_ROOT}/${entry}`)))
      .split('\n')
      .filter((line) => line.startsWith('type='))
    if (answers.length !== desired.length)
      throw new IngressError('The edge gave an answer that cannot be read.')
    for (const [index, entry] of desired.entries()) {
      const [, key, value] = /found=yes.* key="([^"]*)", value="([^"]*)"/.exec(answers[index] ?? '') ?? []
      if (value !== undefined && entry.endsWith(` ${key}`)) known.set(entry, value)
    }
    return known
  }

  return {
    async sync(target) {
      const [servers, entries] = [await readServers(target), await readEntries(target)]
      const commands = [
        ...openServers(target, servers),
        ...changeEntries(target, entries),
        ...retireServers(target, servers),
      ]
      if (commands.length === 0) return
      places.clear()
      const complaint = complaintIn(await cli.run(commands))
      if (complaint !== undefined) throw new IngressError(`The edge refused a change: ${complaint}`)
    },
    entries: async () => [...(await readMaps()).keys()],
    async activeConnections(address, port) {
      let active = 0
      for (const { pid } of await cli.workers()) {
        const key = `${pid} ${address} ${port}`
        const backends = places.get(key) ?? [
          ...new Set(
            parseServers(await cli.run(['show servers state'], pid))
              .filter((server) => server.address === address && server.port === port)
              .map((server) => server.backend),
          ),
        ]
        places.set(key, backends)
        if (backends.length === 0) continue
        const rows = parseStatistics(
          await cli.run(
            backends.map((backend) => `show stat ${backend} 4 -1`),
            pid,
          ),
        )
        for (const row of rows)
          if (row.svname?.replace(/_probed$/, '') === `${address}_${port}`) active += Number(row.scur)
      }
      return active
    },
  }
}

/**
 * New servers come before names point to them and before old ones go, so that there is no moment without one.
 */
function openServers(target: RuntimeTarget, running: RunningServer[]): string[] {
  const states = new Map(running.map((server) => [`${server.backend}/${server.name}`, server.enabled]))
  return [...target.backends].flatMap(([number, route]) =>
    [...serversOf(route)].flatMap(([name, { line, probed }]) => {
      const server = `${backendName(number)}/${name}`
      const enabled = states.get(server)
      if (enabled === true) return []
      return [
        ...(enabled === undefined ? [`add server ${server} ${line}`] : []),
        ...(probed ? [`enable health ${server}`] : []),
        `enable server ${server}`,
      ]
    }),
  )
}

/** What a name leads to is there before the name leads to it, and goes after it. */
function changeEntries(target: RuntimeTarget, known: ReadonlyMap<string, string>): string[] {
  const [puts, deletions]: [string[][], string[][]] = [ROUTE_MAPS.map(() => []), ROUTE_MAPS.map(() => [])]
  for (const [entry, wanted] of target.entries) {
    const now = known.get(entry)
    const rank = ROUTE_MAPS.findIndex((path) => entry.startsWith(`${path} `))
    if (now === wanted) continue
    if (wanted === undefined) deletions[rank]?.push(`del map ${EDGE_ROOT}/${entry}`)
    else puts[rank]?.push(`${now === undefined ? 'add' : 'set'} map ${EDGE_ROOT}/${entry} ${wanted}`)
  }
  return [...puts.flat(), ...deletions.reverse().flat()]
}

/**
 * A server that is no longer wanted gets no new request and keeps the ones it has. One that was retired
 * before is deleted;
 * the edge refuses that while it still holds a connection, and then the next change tries again.
 */
function retireServers(target: RuntimeTarget, running: RunningServer[]): string[] {
  const wanted = new Map(
    [...target.backends].map(([number, route]) => [backendName(number), serversOf(route)]),
  )
  return running.flatMap(({ backend, name, enabled }) => {
    const servers = wanted.get(backend)
    if (!servers || servers.has(name)) return []
    return enabled ? [`disable server ${backend}/${name}`] : [`del server ${backend}/${name}`]
  })
}

const EXPECTED = [
  /^$/,
  /^New server registered\.$/,
  /^Server deleted\.$/,
  /^Server still has connections attached to it, cannot remove it\.$/,
]

function complaintIn(output: string): string | undefined {
  return output
    .split('\n')
    .map((line) => line.trim())
    .find((line) => !EXPECTED.some((expected) => expected.test(line)))
}
