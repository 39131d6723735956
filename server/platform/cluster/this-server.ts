import type { Run } from '#server/kernel/process'
import { startOf } from '#server/platform/host-rules/engine-process'
import { type Firewall, openFirewall } from '#server/platform/host-rules/firewall'
import { ClusterError } from './cluster.ts'
import { output } from './remote-run.ts'
import type { Side } from './tunnel.ts'

/** The machine on which this server's engine works, as one side of the tunnels. */
export interface ThisServer extends Side {
  /** Of the engine's process. */
  pid: number
}

/** Finds it again when its engine was started anew. */
export function createThisServer(docker_host: string, run: Run) {
  let held: { firewall: Firewall; side: ThisServer } | undefined
  return async (): Promise<ThisServer> => {
    if (held && (await startOf(held.firewall.engine.pid)) === held.firewall.engine.started) return held.side
    const firewall = await openFirewall(docker_host, run).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new ClusterError('unsuited', `This server cannot lead a cluster, since ${reason}.`, { cause })
    })
    const { network, chains, engine } = firewall
    const inside: Run = (argv, options) =>
      run(network === undefined ? argv : ['nsenter', `--net=${network}`, ...argv], options)
    held = { firewall, side: { run: inside, chains, pid: engine.pid } }
    return held.side
  }
}

/** The address by which another server sees this one. */
export async function addressTowards({ run }: Side, address: string): Promise<string> {
  const text = await output(run, ['ip', '-4', '-o', 'route', 'get', address])
  const found = / src (\d+\.\d+\.\d+\.\d+)/.exec(text)?.[1]
  if (!found) throw new ClusterError('unreachable', `This server has no route to ${address}.`)
  return found
}

const PROBE = ['src', '192.0.2.1', 'dst', '192.0.2.2', 'proto', 'esp', 'spi', '0x70747201']

/** Whether the kernel of a machine encrypts networks of a cluster as the engine asks it to. */
export async function canEncrypt({ run }: Side): Promise<boolean> {
  const key = `0x${'00'.repeat(20)}`
  const cipher = ['mode', 'transport', 'aead', 'rfc4106(gcm(aes))', key, '128']
  const made = await run(['ip', 'xfrm', 'state', 'add', ...PROBE, ...cipher], { cwd: '/' })
  if (made.exit_code === 0) await run(['ip', 'xfrm', 'state', 'delete', ...PROBE], { cwd: '/' })
  return made.exit_code === 0
}
