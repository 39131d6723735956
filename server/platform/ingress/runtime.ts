import type { MasterCli } from './master-cli.ts'
import type { Route } from './ingress.ts'
import { IngressError } from './ingress.ts'
import { backendName, EDGE_ROOT, HOSTS_MAP, serversOf, WILDCARDS_MAP } from './render.ts'
import { parseMap, parseServers, parseStatistics, type RunningServer } from './statistics.ts'

/** What should run: the routes of some backends, and for some host names the backend that serves them. */
export interface RuntimeTarget {
  backends: ReadonlyMap<number, Route | undefined>
  hosts: ReadonlyMap<string, number | undefined>
}

/** Changes the running edge without a reload. */
export interface EdgeRuntime {
  /** Makes the running process equal to the target, by what it says itself that it runs. */
  sync(target: RuntimeTarget): Promise<void>
  /** Every host name that the running process knows. */
  hostnames(): Promise<string[]>
  activeConnections(address: string, port: number): Promise<number>
}

/** From so many on, asking for everything at once is cheaper than for each. */
const MANY = 100

export function createEdgeRuntime(cli: MasterCli): EdgeRuntime {
  /** Where a worker has servers of an address, so that a deployment that waits for one does not make the edge list all again and again. */
  const places = new Map<string, string[]>()

  async function readServers(target: RuntimeTarget): Promise<RunningServer[]> {
    if (target.backends.size === 0) return []
    if (target.backends.size > MANY) return parseServers(await cli.run(['show servers state']))
    const outputs = await cli.run([...target.backends.keys()].map((number) => `show servers state ${backendName(number)}`))
    return parseServers(outputs)
  }

  async function readHosts(target: RuntimeTarget): Promise<Map<string, string>> {
    const known = new Map<string, string>()
    if (target.hosts.size > MANY) {
      for (const [hostname, backend] of parseMap(await cli.run([`show map ${EDGE_ROOT}/${HOSTS_MAP}`]))) known.set(hostname, backend)
      for (const [parent, backend] of parseMap(await cli.run([`show map ${EDGE_ROOT}/${WILDCARDS_MAP}`]))) known.set(`*.${parent}`, backend)
      return known
    }
    const hostnames = [...target.hosts.keys()]
    if (hostnames.length === 0) return known
    const answers = (await cli.run(hostnames.map((hostname) => `get map ${mapKey(hostname)}`))).split('\n').filter((line) => line.startsWith('type='))
    if (answers.length !== hostnames.length) throw new IngressError('The edge gave an answer that cannot be read.')
    for (const [index, hostname] of hostnames.entries()) {
      const backend = /found=yes.* value="([^"]*)"/.exec(answers[index] ?? '')?.[1]
      if (backend !== undefined) known.set(hostname, backend)
    }
    return known
  }

  return {
    async sync(target) {
      const [servers, hosts] = [await readServers(target), await readHosts(target)]
      const commands = [...openServers(target, servers), ...changeHosts(target, hosts), ...retireServers(target, servers)]
      if (commands.length === 0) return
      places.clear()
      const complaint = complaintIn(await cli.run(commands))
      if (complaint !== undefined) throw new IngressError(`The edge refused a change: ${complaint}`)
    },
    async hostnames() {
      const whole = parseMap(await cli.run([`show map ${EDGE_ROOT}/${HOSTS_MAP}`]))
      const wildcards = parseMap(await cli.run([`show map ${EDGE_ROOT}/${WILDCARDS_MAP}`]))
      return [...whole.keys(), ...[...wildcards.keys()].map((parent) => `*.${parent}`)]
    },
    async activeConnections(address, port) {
      let active = 0
      for (const { pid } of await cli.workers()) {
        const key = `${pid} ${address} ${port}`
        const backends = places.get(key) ?? [...new Set(parseServers(await cli.run(['show servers state'], pid))
          .filter((server) => server.address === address && server.port === port).map((server) => server.backend))]
        places.set(key, backends)
        if (backends.length === 0) continue
        const rows = parseStatistics(await cli.run(backends.map((backend) => `show stat ${backend} 4 -1`), pid))
        for (const row of rows) if (row.svname?.replace(/_probed$/, '') === `${address}_${port}`) active += Number(row.scur)
      }
      return active
    },
  }
}

function mapKey(hostname: string): string {
  return hostname.startsWith('*.') ? `${EDGE_ROOT}/${WILDCARDS_MAP} ${hostname.slice(2)}` : `${EDGE_ROOT}/${HOSTS_MAP} ${hostname}`
}

/** New servers come before names point to them and before old ones go, so that there is no moment without one. */
function openServers(target: RuntimeTarget, running: RunningServer[]): string[] {
  const states = new Map(running.map((server) => [`${server.backend}/${server.name}`, server.enabled]))
  return [...target.backends].flatMap(([number, route]) => [...serversOf(route)].flatMap(([name, { line, probed }]) => {
    const server = `${backendName(number)}/${name}`
    const enabled = states.get(server)
    if (enabled === true) return []
    return [...(enabled === undefined ? [`add server ${server} ${line}`] : []), ...(probed ? [`enable health ${server}`] : []), `enable server ${server}`]
  }))
}

function changeHosts(target: RuntimeTarget, known: ReadonlyMap<string, string>): string[] {
  return [...target.hosts].flatMap(([hostname, number]) => {
    const [now, wanted] = [known.get(hostname), number === undefined ? undefined : backendName(number)]
    if (now === wanted) return []
    if (wanted === undefined) return [`del map ${mapKey(hostname)}`]
    return [`${now === undefined ? 'add' : 'set'} map ${mapKey(hostname)} ${wanted}`]
  })
}

/**
 * A server that is no longer wanted gets no new request and keeps the ones it has. One that was retired before is deleted;
 * the edge refuses that while it still holds a connection, and then the next change tries again.
 */
function retireServers(target: RuntimeTarget, running: RunningServer[]): string[] {
  const wanted = new Map([...target.backends].map(([number, route]) => [backendName(number), serversOf(route)]))
  return running.flatMap(({ backend, name, enabled }) => {
    const servers = wanted.get(backend)
    if (!servers || servers.has(name)) return []
    return enabled ? [`disable server ${backend}/${name}`] : [`del server ${backend}/${name}`]
  })
}

const EXPECTED = [/^$/, /^New server registered\.$/, /^Server deleted\.$/, /^Server still has connections attached to it, cannot remove it\.$/]

function complaintIn(output: string): string | undefined {
  return output.split('\n').map((line) => line.trim()).find((line) => !EXPECTED.some((expected) => expected.test(line)))
}
