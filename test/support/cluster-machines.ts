import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Docker from 'dockerode'
import type { NodeTarget } from '#server/platform/cluster/cluster'
import { poll } from './poll.ts'

/** A machine of a cluster: a network and a host name of its own, and a container engine. */
export interface Machine {
  name: string
  address: string
  /** Socket of its engine, as this process reaches it. */
  docker_host: string
  docker: Docker
  /** Runs a program in its network; what it printed. */
  inside(...argv: string[]): string
  /** Cuts its cable, or puts it back. */
  setReachable(is_reachable: boolean): void
  /** Has its engine answer nobody, though it runs, or answer again. */
  setAnswering(does_answer: boolean): void
  /** Ends its engine and starts it again. */
  restartEngine(): Promise<void>
  close(): Promise<void>
}

/** Another process may have machines of its own. */
const NET = `10.98.${process.pid % 254}`
/** Where a machine that lets in forbids to forward streams. */
export const STRICT_PORT = 2222
const BRIDGE = `ptl-${process.pid}`
const sh = (...argv: string[]): string =>
  execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
const quietly = (...argv: string[]): void => {
  try {
    sh(...argv)
  } catch {
    // It is as it should be already.
  }
}

/** The network between the machines, of which this process has an address, too. */
function openLan(): void {
  quietly('ip', 'link', 'add', BRIDGE, 'type', 'bridge')
  sh('ip', 'addr', 'replace', `${NET}.254/24`, 'dev', BRIDGE)
  sh('ip', 'link', 'set', BRIDGE, 'up')
  // What a bridge passes on goes through the packet filter of this machine, whose engine lets
  // nothing of others pass.
  for (const way of ['-i', '-o']) sh('iptables', '-w', '10', '-I', 'FORWARD', way, BRIDGE, '-j', 'ACCEPT')
}
function closeLan(): void {
  for (const way of ['-i', '-o'])
    quietly('iptables', '-w', '10', '-D', 'FORWARD', way, BRIDGE, '-j', 'ACCEPT')
  quietly('ip', 'link', 'del', BRIDGE)
}

/** Numbers of the users of containers, of a user and a group that are there already. */
const IDS = 'nobody:700000:65536\nnogroup:700000:65536\n'
/** As an engine that Portreeve installs is set up. */
export const WITH_USERS = { 'userns-remap': 'nobody:nogroup' }

const SSHD = (folder: string, address: string, port: number, ...more: string[]): string =>
  [
    `Port ${port}`,
    `ListenAddress ${address}`,
    `HostKey ${folder}/host`,
    `AuthorizedKeysFile ${folder}/user.pub`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PermitRootLogin yes',
    'PasswordAuthentication no',
    ...more,
    '',
  ].join('\n')

/** @param settings of its engine. */
async function startMachine(
  index: number,
  has_logins: boolean,
  settings: Record<string, unknown>,
): Promise<Machine & { folder: string }> {
  mkdirSync('/var/tmp', { recursive: true })
  // Not below /tmp, which may be a file system that images cannot be stored on.
  const folder = mkdtempSync('/var/tmp/portreeve-machine-')
  // Containers with users of their own have to reach what is in it.
  chmodSync(folder, 0o711)
  const at = (name: string) => join(folder, name)
  const name = `ptm-${process.pid}-${index}`
  const cable = `ptm${process.pid % 100_000}${index}`
  const address = `${NET}.${index}`
  sh('ip', 'netns', 'add', name)
  sh('ip', 'link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
  sh('ip', 'link', 'set', cable, 'master', BRIDGE, 'up')
  sh('ip', '-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
  for (const link of ['lo', 'eth0']) sh('ip', '-n', name, 'link', 'set', link, 'up')
  sh('ip', '-n', name, 'route', 'add', 'default', 'via', `${NET}.254`)
  for (const key of ['host', 'user']) sh('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', at(key))
  writeFileSync(at('sshd'), SSHD(folder, address, 22))
  writeFileSync(at('strict'), SSHD(folder, address, STRICT_PORT, 'AllowStreamLocalForwarding no'))
  writeFileSync(at('daemon.json'), JSON.stringify({ 'deprecated-key-path': at('key.json'), ...settings }))
  writeFileSync(at('ids'), IDS)
  mkdirSync(at('run'), { recursive: true })
  const docker_host = `unix://${at('run/docker.sock')}`
  const docker = new Docker({ socketPath: at('run/docker.sock') })
  const world = ['nsenter', `--net=/run/netns/${name}`, 'unshare', '--uts', '--mount', 'sh', '-c']
  // In a mount namespace of its own /run is another folder: whoever logs in finds the engine where
  // engines are. That of this server is at the path that it is called by.
  const setting = has_logins
    ? `mount --bind ${at('run')} /run && mkdir -p /run/sshd /run/lock && [ ! -e ~/.bashrc ] || mount --bind /dev/null ~/.bashrc
touch /etc/subuid /etc/subgid && mount --bind ${at('ids')} /etc/subuid && mount --bind ${at('ids')} /etc/subgid
/usr/sbin/sshd -D -f ${at('sshd')} & echo $! > ${at('sshd.pid')}
/usr/sbin/sshd -D -f ${at('strict')} & echo $! > ${at('strict.pid')}`
    : ''
  const places = has_logins
    ? ''
    : `--host ${docker_host} --exec-root ${at('run/docker')} --pidfile ${at('run/docker.pid')}`
  const script = `hostname machine-${index}
${setting}
while :; do
  dockerd ${places} --config-file ${at('daemon.json')} --data-root ${at('data')} --cgroup-parent /${name} --bip 172.29.${index}.1/24 >> ${at('log')} 2>&1
  [ -e ${at('stop')} ] && exit 0
done`
  const machine: ChildProcess = spawn(world[0]!, [...world.slice(1), script], {
    stdio: 'ignore',
    detached: true,
  })
  const answers = () =>
    docker.ping().then(
      () => true,
      () => false,
    )
  const enginePid = () => Number(readFileSync(at('run/docker.pid'), 'utf8'))
  await poll(answers)
  return {
    name,
    folder,
    address,
    docker_host,
    docker,
    inside: (...argv) => sh('nsenter', `--net=/run/netns/${name}`, ...argv),
    setReachable: (is_reachable) => void sh('ip', 'link', 'set', cable, is_reachable ? 'up' : 'down'),
    setAnswering: (does_answer) => void process.kill(enginePid(), does_answer ? 'SIGCONT' : 'SIGSTOP'),
    async restartEngine() {
      process.kill(enginePid(), 'SIGKILL')
      await poll(async () => !(await answers()))
      await poll(answers)
    },
    async close() {
      for (const { Id } of await docker.listContainers({ all: true }))
        await docker.getContainer(Id).remove({ force: true })
      const ended = new Promise((resolve) => machine.once('exit', resolve))
      writeFileSync(at('stop'), '')
      process.kill(enginePid(), 'SIGTERM')
      await ended
      for (const file of has_logins ? ['sshd.pid', 'strict.pid'] : [])
        process.kill(Number(readFileSync(at(file), 'utf8')), 'SIGTERM')
      sh('ip', 'netns', 'del', name)
      quietly('umount', '--lazy', at('data'))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const targetOf = ({ address, folder }: { address: string; folder: string }): NodeTarget => ({
  address,
  port: 22,
  user: 'root',
  private_key: readFileSync(join(folder, 'user'), 'utf8'),
})
const hostKeyOf = ({ folder }: { folder: string }): string =>
  sh('ssh-keygen', '-lf', join(folder, 'host.pub')).split(' ')[1]!

/**
 * Two machines in one network, of which the second lets root in over SSH.
 * @param settings of both engines.
 * @param of_worker settings of the second one alone.
 */
export async function startMachines(
  settings: Record<string, unknown> = {},
  of_worker: Record<string, unknown> = {},
) {
  openLan()
  const manager = await startMachine(1, false, settings)
  const worker = await startMachine(2, true, { ...settings, ...of_worker })
  return {
    manager: manager as Machine,
    worker: worker as Machine,
    target: targetOf(worker),
    /** Fingerprint of the worker's key, as it prints it itself. */
    host_key: hostKeyOf(worker),
    /** One more that lets root in, and how it is logged in to. */
    async add(): Promise<{ machine: Machine; target: NodeTarget }> {
      const machine = await startMachine(3, true, { ...settings, ...of_worker })
      return { machine, target: { ...targetOf(machine), host_key: hostKeyOf(machine) } }
    },
    async close(): Promise<void> {
      await worker.close()
      await manager.close()
      closeLan()
    },
  }
}
