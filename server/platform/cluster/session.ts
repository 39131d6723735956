import type { Duplex } from 'node:stream'
import type { Run } from '#server/kernel/process'
import { type Chains, createChains } from '#server/platform/host-rules/chains'
import type { Dial } from '#server/platform/outbound/outbound'
import { ClusterError, type NodeTarget } from './cluster.ts'
import { commandOf, createRemoteRun, output } from './remote-run.ts'
import { connectSsh, type Ssh } from './ssh.ts'

export const ENGINE_SOCKET = '/var/run/docker.sock'
export const ENGINE_PID_FILE = '/var/run/docker.pid'

/** A login at another server, as whoever administers it. */
export interface Session {
  readonly host_key: string
  /** The address that it was reached at. */
  readonly address: string
  /** Whether commands run as root. */
  readonly is_root: boolean
  /** As root, where that is possible. */
  run: Run
  chains: Chains
  /** A stream to the socket of its container engine. */
  openEngine(): Promise<Duplex>
  readonly closed: Promise<void>
  close(): void
}

/** Speaks to the engine through a program, where the login itself may not open its socket. */
async function openByProgram(ssh: Ssh, is_login_root: boolean): Promise<Duplex> {
  const argv = ['docker', '--host', `unix://${ENGINE_SOCKET}`, 'system', 'dial-stdio']
  const channel = await ssh.exec(commandOf(argv, is_login_root))
  channel.stderr.resume()
  return channel
}

export async function openSession(dial: Dial, target: NodeTarget, signal?: AbortSignal): Promise<Session> {
  const ssh = await connectSsh(dial, target, signal)
  try {
    const asLogin = createRemoteRun(ssh, true)
    const is_login_root = (await output(asLogin, ['id', '-u'])).trim() === '0'
    const run = is_login_root ? asLogin : createRemoteRun(ssh, false)
    const is_root = is_login_root || (await run(['true'], { cwd: '/' })).exit_code === 0
    const has_v6 = (await asLogin(['test', '-e', '/proc/net/if_inet6'], { cwd: '/' })).exit_code === 0
    let forwards: boolean | undefined = is_login_root ? undefined : false
    return {
      host_key: ssh.host_key,
      address: ssh.address,
      closed: ssh.closed,
      is_root,
      run: is_root ? run : asLogin,
      chains: { ...createChains(run), has: (family) => family === 4 || has_v6 },
      async openEngine() {
        if (forwards === false) return openByProgram(ssh, is_login_root)
        try {
          const stream = await ssh.openSocket(ENGINE_SOCKET)
          forwards = true
          return stream
        } catch (error) {
          // A server that forbids to forward streams says the same as one without an engine.
          const is_there = async () =>
            (await run(['test', '-S', ENGINE_SOCKET], { cwd: '/' })).exit_code === 0
          if (forwards || !(await is_there())) throw error
          forwards = false
          return openByProgram(ssh, is_login_root)
        }
      },
      close: ssh.close,
    }
  } catch (error) {
    ssh.close()
    if (error instanceof ClusterError) throw error
    throw new ClusterError('failed', `${target.address} runs no commands for ${target.user}.`, {
      cause: error,
    })
  }
}
