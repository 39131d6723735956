import { createConnection } from '#server/platform/engine/connection'
import { createLabelScope } from '#server/platform/engine/labels'
import { type NetworkInfo, PROJECT_NETWORKS, subnetsOf } from '#server/platform/engine/networks'
import type { Range } from '#server/platform/engine/subnets'
import { createTurn, type InTurn } from '#server/platform/engine/turn'
import type { ContainerSpec } from '#server/platform/engine/workload'
import type { Opening } from '#server/platform/host-rules/egress-rules'
import { ensureIsolation } from '#server/platform/host-rules/isolation'
import { nameserversIn, RESOLVER_FILES } from '#server/platform/host-rules/nameservers'
import { run as runProgram } from '#server/kernel/process'
import type { Dial } from '#server/platform/outbound/outbound'
import { ClusterError, type Member, type NodeOf } from './cluster.ts'
import { createLink, type Link, rangesOf } from './link.ts'
import type { Session } from './session.ts'
import { createSharedNetworks, sharedName } from './shared-networks.ts'
import { createShipping } from './shipping.ts'
import { addressTowards, canEncrypt, createThisServer } from './this-server.ts'
import { ensureManagerEnd, ensureMemberEnd } from './tunnel.ts'
import { innerAddresses } from './tunnel-plan.ts'
import { createWatch } from './watch.ts'

export interface MembersOptions {
  docker_host: string
  installation: string
  layer_bytes: number | undefined
  dial: Dial
  /** What the operator lets containers reach of private networks. */
  openings(): Promise<readonly Opening[]>
  /** Lets this server's engine reach addresses of other servers. */
  admit(addresses: readonly string[], port: number): Promise<void>
  log(message: string): void
}

const GOSSIP_PORT = 7946

/** The members there are, their connections, and what leads to their containers. */
export function createMembers(options: MembersOptions) {
  const local = createConnection(options.docker_host)
  const scope = createLabelScope(options.installation)
  const shared = createSharedNetworks(local, scope)
  const shipping = createShipping(local)
  const thisServer = createThisServer(options.docker_host, runProgram)
  const inTurn = createTurn()
  const watchers = new Set<() => void>()
  const turns = new WeakMap<Link, InTurn>()
  let links: readonly Link[] = []
  /** Servers that are on their way into the cluster: whoever puts things back does not close it to them. */
  const coming = new Set<Link>()
  let placedOn: NodeOf = () => undefined
  let loading: Promise<void> | undefined
  /** Members that have left, or are about to: nothing is put back there. */
  const departed = new Set<string>()

  /** All members as they are to be. */
  const everyone = (): Link[] => {
    const ids = new Set(links.map(({ member }) => member.id))
    return [...links, ...[...coming].filter(({ member }) => !ids.has(member.id))]
  }
  const addresses = (all: readonly Link[]) => all.flatMap((link) => link.address() ?? [])

  /** Lets this server's engine speak to those of others. */
  const admit = () => options.admit(addresses(everyone()), GOSSIP_PORT)

  /** Leads what is meant for members to them. */
  const ensureHere = () =>
    inTurn(async () => {
      const all = everyone()
      if (all.length === 0) return
      const inner = innerAddresses(all.map(({ member }) => member.id))
      const ends = all.flatMap((link) => {
        const address = link.address()
        return address === undefined
          ? []
          : [{ address, inner: inner.get(link.member.id)!, subnets: link.subnets() }]
      })
      await ensureManagerEnd(await thisServer(), ends)
    })

  /** One at a time on each member. */
  function furnish(link: Link, session: Session): Promise<void> {
    const turn = turns.get(link) ?? createTurn()
    turns.set(link, turn)
    return turn(() => furnishNow(link, session))
  }
  async function furnishNow(link: Link, session: Session): Promise<void> {
    const all = everyone()
    if (!session.is_root)
      throw new ClusterError('not_root', `The login at ${link.member.target.address} may not become root.`)
    const ids = new Set([...all.map(({ member }) => member.id), link.member.id])
    const own = { address: session.address, inner: innerAddresses([...ids]).get(link.member.id)! }
    await ensureMemberEnd(session, own, {
      manager_address: await addressTowards(await thisServer(), session.address),
      peers: addresses(all.filter(({ member }) => member.id !== link.member.id)),
    })
    const files = await session.run(['cat', ...RESOLVER_FILES], { cwd: '/' })
    await ensureIsolation(session.chains, {
      openings: await options.openings(),
      nameservers: [...new Set(nameserversIn(files.stdout))].sort(),
      edge_ports: [],
      own_networks: PROJECT_NETWORKS,
    })
    await link.readSubnets()
  }

  /** Ranges that the networks of one server must stay out of: those of all others. */
  async function takenBeside(link?: Link): Promise<Range[]> {
    const here = link ? await local.call<NetworkInfo[]>({ path: '/networks' }) : []
    return [
      ...here.flatMap(subnetsOf),
      ...links.filter((other) => other !== link).flatMap((other) => rangesOf(other)),
    ]
  }

  function open(member: Member): Link {
    const link: Link = createLink({
      dial: options.dial,
      member,
      installation: options.installation,
      layer_bytes: options.layer_bytes,
      takenRanges: () => takenBeside(link),
      furnish: async (own, session) => {
        await furnish(own, session)
        await ensureHere()
      },
      log: options.log,
    })
    return link
  }

  const watch = createWatch({ links: () => links, furnish, ensureHere, log: options.log })

  async function encrypts(): Promise<boolean> {
    const sides = await Promise.all([
      thisServer(),
      ...links.filter((link) => link.isUp()).map((link) => link.session()),
    ])
    return (await Promise.all(sides.map(canEncrypt))).every(Boolean)
  }

  const isSame = (one: Member, other: Member) => JSON.stringify(one) === JSON.stringify(other)

  return {
    local,
    scope,
    shared,
    thisServer,
    open,
    furnish,
    ensureHere,
    list: () => links,
    onChange(changed: () => void) {
      watchers.add(changed)
      return () => void watchers.delete(changed)
    },
    /** From now on it is no member, whoever names it; what is under way there has ended. */
    async depart(node_id: string): Promise<Link | undefined> {
      departed.add(node_id)
      for (const link of coming) if (link.member.id === node_id) coming.delete(link)
      const link = links.find(({ member }) => member.id === node_id)
      links = links.filter((other) => other !== link)
      for (const changed of watchers) changed()
      await watch.settled()
      return link
    },
    arrive: (node_id: string) => void departed.delete(node_id),
    /** Opens the cluster to a server before it joins; that stays until it is a member, or could not be one. */
    async welcome<T>(link: Link, work: () => Promise<T>): Promise<T> {
      coming.add(link)
      try {
        await admit()
        await ensureHere()
        return await work()
      } catch (error) {
        coming.delete(link)
        throw error
      }
    },
    nodeOf: ((release_id, app_id) => placedOn(release_id, app_id)) satisfies NodeOf,
    use(named: readonly Member[], nodeOf?: NodeOf): void {
      if (nodeOf) placedOn = nodeOf
      const members = named.filter(({ id }) => !departed.has(id))
      const kept = links.filter(({ member }) => members.some((other) => isSame(member, other)))
      const fresh = members.filter((member) => !kept.some((link) => isSame(link.member, member)))
      if (fresh.length === 0 && kept.length === links.length) return
      for (const link of links) if (!kept.includes(link)) link.close()
      for (const link of coming) if (members.some(({ id }) => id === link.member.id)) coming.delete(link)
      links = [...kept, ...fresh.map(open)]
      void admit()
      if (links.length > 0) loading ??= shared.load().catch(() => void (loading = undefined))
      for (const changed of watchers) changed()
      watch.lookNow()
    },
    /** Brings to a member what a container there needs. */
    async prepare<T extends ContainerSpec>(link: Link, spec: T, signal: AbortSignal): Promise<T> {
      await link.engine.version(signal)
      await link.furnished()
      await loading
      if (await shipping.ensure(link.connection, link.member.id, spec.image, signal))
        // Nobody waits for it: what stays goes with the next one.
        void shipping.removeStale(link.engine).catch(() => {})
      const labels = { project: spec.project_id }
      const networks = [spec.network, ...(spec.more_networks ?? [])]
      for (const network of networks) await link.engine.ensureNetwork(network, labels)
      if (await link.readSubnets()) await ensureHere()
      await shared.ensure(spec.network, labels, encrypts)
      return { ...spec, shared_network: sharedName(spec.network) }
    },
    here: <T extends ContainerSpec>(spec: T): T =>
      links.length > 0 && shared.has(spec.network)
        ? { ...spec, shared_network: sharedName(spec.network) }
        : spec,
    takenHere: () => takenBeside(),
    close(): void {
      watch.stop()
      for (const link of links) link.close()
      links = []
      local.close()
    },
  }
}
export type Members = ReturnType<typeof createMembers>
