import type { Run } from '#server/kernel/process'
import { type Chain, type Chains, PREFIX } from '#server/platform/host-rules/chains'
import { CONTAINER_BRIDGES } from '#server/platform/host-rules/isolation-rules'
import { output } from './remote-run.ts'
import { SHARED_NETWORKS } from './swarm.ts'
import {
  changesOf,
  DEVICE,
  deviceLines,
  MANAGER_INNER,
  readWays,
  type TunnelEnd,
  type TunnelMember,
  VXLAN_PORT,
  waysTo,
} from './tunnel-plan.ts'

/** A machine of the cluster: what runs there, and its packet filter. */
export interface Side {
  run: Run
  chains: Chains
}

const GOSSIP_PORT = 7946
const MANAGER_PORT = 2377
const STANDING = '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN'

const batch = (run: Run, program: 'ip' | 'bridge', lines: readonly string[]) =>
  lines.length > 0
    ? output(run, [program, '-batch', '-'], { stdin: `${lines.join('\n')}\n` })
    : Promise.resolve('')

/** Makes the device where it is missing, and leads what is meant for the other end through it. */
async function ensureWays({ run }: Side, inner: string, others: readonly TunnelMember[]): Promise<void> {
  const { create, settle } = deviceLines(inner)
  const address = await run(['ip', '-o', '-4', 'addr', 'show', 'dev', DEVICE, 'up'], { cwd: '/' })
  // One that was made meanwhile is as good.
  if (address.exit_code !== 0) await run(['ip', ...create.split(' ')], { cwd: '/' })
  if (!address.stdout.includes(` ${inner}/32 `)) await batch(run, 'ip', settle)
  const found = readWays({
    routes: await output(run, ['ip', '-4', 'route', 'show', 'dev', DEVICE]),
    neighbours: await output(run, ['ip', '-4', 'neigh', 'show', 'dev', DEVICE, 'nud', 'permanent']),
    forwards: await output(run, ['bridge', 'fdb', 'show', 'dev', DEVICE]),
  })
  const changes = changesOf(found, waysTo(others, found.routes), inner)
  await batch(run, 'bridge', changes.bridge)
  await batch(run, 'ip', changes.ip)
}

const PORTS = [
  ['tcp', [MANAGER_PORT, GOSSIP_PORT]],
  ['udp', [GOSSIP_PORT, VXLAN_PORT]],
] as const

/**
 * Ports of the cluster are for its servers alone. A container leaves its machine by the address of
 * that, and would be taken for it: what it forges into the tunnel or a network of others would be
 * believed there.
 */
function portChains(family: Chain['family'], peers: readonly string[]): Chain[] {
  return PORTS.flatMap(([protocol, ports]) => {
    const name = `${PREFIX}CLUSTER-${protocol.toUpperCase()}`
    const match = ['-p', protocol, '-m', 'multiport', '--dports', ports.join(',')]
    const let_in = peers.map((peer) => `-s ${peer}/32 -j RETURN`)
    const rules = ['-i lo -j RETURN', ...let_in, '-j DROP']
    const away = peers.map((peer) => `-d ${peer}/32 -j DROP`)
    return [
      { family, name, parent: 'INPUT', match, rules },
      // Servers reach each other over IPv4 alone, and what their engines listen on is both.
      ...(family === 4 ? [{ family, name: `${name}-AWAY`, parent: 'DOCKER-USER', match, rules: away }] : []),
    ]
  })
}

/**
 * What comes out of the tunnel and what goes into it. Containers have an address in their project's
 * network over all servers besides, which no rule about their own networks knows: nothing leaves a
 * bridge by that.
 */
function tunnelChains(
  input: readonly string[],
  forward: readonly string[],
  away: readonly string[],
): Chain[] {
  const chain = (name: string, parent: string, match: string[], rules: readonly string[]): Chain => ({
    family: 4,
    name: `${PREFIX}CLUSTER-${name}`,
    parent,
    match,
    rules,
  })
  const shared = ['-s', SHARED_NETWORKS, '-i', CONTAINER_BRIDGES]
  return [
    chain('IN', 'INPUT', ['-i', DEVICE], input),
    chain('FWD', 'DOCKER-USER', ['-i', DEVICE], forward),
    chain('AWAY', 'DOCKER-USER', ['-o', DEVICE], away),
    chain('SHARED-IN', 'INPUT', shared, ['-j DROP']),
    chain('SHARED-FWD', 'DOCKER-USER', shared, ['-j DROP']),
  ]
}

async function ensureChains({ chains }: Side, desired: readonly Chain[]): Promise<void> {
  for (const chain of desired) if (chains.has(chain.family)) await chains.ensure(chain)
}

/** This server reaches containers of members; nothing of theirs begins anything here. */
export async function ensureManagerEnd(side: Side, members: readonly TunnelMember[]): Promise<void> {
  await ensureChains(side, [
    ...portChains(
      4,
      members.map(({ address }) => address),
    ),
    ...portChains(6, []),
    ...tunnelChains([STANDING, '-j DROP'], ['-j DROP'], ['-j DROP']),
  ])
  await ensureWays(side, MANAGER_INNER, members)
}

const RAW = ['-i', DEVICE, '-s', `${MANAGER_INNER}/32`, '-j', 'ACCEPT'] as const
const rawRule = (verb: '-C' | '-I' | '-D') => [
  'iptables',
  '-w',
  '10',
  '-t',
  'raw',
  verb,
  'PREROUTING',
  ...RAW,
]

/** A member lets this server reach its containers, and nobody else. */
export async function ensureMemberEnd(
  side: Side,
  own: TunnelEnd,
  { manager_address, peers }: { manager_address: string; peers: readonly string[] },
): Promise<void> {
  await ensureChains(side, [
    ...portChains(4, [manager_address, ...peers]),
    ...portChains(6, []),
    ...tunnelChains(['-j DROP'], [`-s ${MANAGER_INNER}/32 -j ACCEPT`, '-j DROP'], [STANDING, '-j DROP']),
  ])
  await ensureWays(side, own.inner, [{ address: manager_address, inner: MANAGER_INNER, subnets: [] }])
  // Engines from version 28 on drop in this table what comes to a container from elsewhere than its
  // bridge.
  const found = await side.run(rawRule('-C'), { cwd: '/' })
  if (found.exit_code !== 0) await output(side.run, rawRule('-I'))
}

/** Takes away whatever of the tunnel a side has. */
export async function removeEnd({ run, chains }: Side): Promise<void> {
  await run(['ip', 'link', 'del', DEVICE], { cwd: '/' })
  await run(rawRule('-D'), { cwd: '/' })
  for (const family of [4, 6] as const) {
    if (!chains.has(family)) continue
    for (const name of await chains.names(family, `${PREFIX}CLUSTER-`)) await chains.remove(family, name)
  }
}
