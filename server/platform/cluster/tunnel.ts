import type { Run } from '#server/kernel/process'
import { type Chain, type Chains, PREFIX } from '#server/platform/host-rules/chains'
import { output } from './remote-run.ts'
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

/** Ports of the cluster are for its servers alone. */
function portChains(peers: readonly string[]): Chain[] {
  const rules = ['-i lo -j RETURN', ...peers.map((peer) => `-s ${peer}/32 -j RETURN`), '-j DROP']
  const chain = (protocol: 'tcp' | 'udp', ports: readonly number[]): Chain => ({
    family: 4,
    name: `${PREFIX}CLUSTER-${protocol.toUpperCase()}`,
    parent: 'INPUT',
    match: ['-p', protocol, '-m', 'multiport', '--dports', ports.join(',')],
    rules,
  })
  return [chain('tcp', [MANAGER_PORT, GOSSIP_PORT]), chain('udp', [GOSSIP_PORT, VXLAN_PORT])]
}
/** What comes out of the tunnel, by where it goes. */
const tunnelChains = (input: readonly string[], forward: readonly string[]): Chain[] => [
  { family: 4, name: `${PREFIX}CLUSTER-IN`, parent: 'INPUT', match: ['-i', DEVICE], rules: input },
  { family: 4, name: `${PREFIX}CLUSTER-FWD`, parent: 'DOCKER-USER', match: ['-i', DEVICE], rules: forward },
]

async function ensureChains({ chains }: Side, desired: readonly Chain[]): Promise<void> {
  for (const chain of desired) await chains.ensure(chain)
}

/** This server reaches containers of members; nothing of theirs begins anything here. */
export async function ensureManagerEnd(side: Side, members: readonly TunnelMember[]): Promise<void> {
  await ensureChains(side, [
    ...portChains(members.map(({ address }) => address)),
    ...tunnelChains([STANDING, '-j DROP'], ['-j DROP']),
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
    ...portChains([manager_address, ...peers]),
    ...tunnelChains(['-j DROP'], [`-s ${MANAGER_INNER}/32 -j ACCEPT`, '-j DROP']),
  ])
  await ensureWays(side, own.inner, [{ address: manager_address, inner: MANAGER_INNER, subnets: [] }])
  // Engines from version 28 on drop in this table what comes to a container from elsewhere than its bridge.
  const found = await side.run(rawRule('-C'), { cwd: '/' })
  if (found.exit_code !== 0) await output(side.run, rawRule('-I'))
}

/** Takes away whatever of the tunnel a side has. */
export async function removeEnd({ run, chains }: Side): Promise<void> {
  await run(['ip', 'link', 'del', DEVICE], { cwd: '/' })
  await run(rawRule('-D'), { cwd: '/' })
  for (const name of await chains.names(4, `${PREFIX}CLUSTER-`)) await chains.remove(4, name)
}
