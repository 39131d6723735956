import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '#test/support/portreeve'
import { must } from '../../scripts/images/command.ts'
import { ensureBootstrapTool, findSources } from '../../scripts/images/debian.ts'

/** What a VPS brings, and the engine, whose installation is not what is looked at. */
const PACKAGES =
  'apt,ca-certificates,curl,dbus,docker.io,git,iproute2,iptables,kmod,openssh-client,procps,systemd,systemd-sysv'
const BOOTSTRAP_MS = 600_000
const NETWORK = 240
const POWER_OFF = 'SIGRTMIN+4'

export interface Said {
  code: number
  output: string
}
/** A Debian with a systemd of its own as PID 1, and a network of its own. */
export interface SystemdMachine {
  root: string
  address: string
  boot(): Promise<void>
  /** As its button does; resolves when it is off. */
  powerOff(): Promise<void>
  sh(script: string, env?: Record<string, string>): Said
  dispose(): Promise<void>
}

/** Unpacks a Debian into a folder that is kept: the next run need not do it again. */
async function provideDebian(tar: string): Promise<void> {
  if (existsSync(tar)) return
  await ensureBootstrapTool(console.log)
  // What it writes goes by the end of the name.
  const fresh = `${tar}.new.tar`
  const sources = await findSources('bookworm')
  const words = ['--quiet', '--variant=minbase', '--mode=root', '--aptopt=APT::Install-Recommends "false"']
  await must(['mmdebstrap', ...words, `--include=${PACKAGES}`, 'bookworm', fresh, ...sources], {
    timeout_ms: BOOTSTRAP_MS,
  })
  renameSync(fresh, tar)
}

/** The functions that make a network namespace for a second lane of tests, and take it away. */
const lane = (call: string, ...args: (string | number)[]) =>
  execFileSync(
    'bash',
    ['-c', `set -eu; . scripts/shell/lane.sh; ${call} "$@"`, 'bash', ...args.map(String)],
    { stdio: 'ignore' },
  )

function removeGroups(folder: string): void {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroups(join(folder, entry.name))
  rmdirSync(folder)
}

/** The process that is PID 1 of the machine that this started. */
function firstProcessOf(starter: number): number | undefined {
  const children = (pid: number) =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  const is_systemd = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'systemd'
  return children(starter).find(is_systemd)
}

/** @param folder where the Debian is kept from run to run. */
export async function createSystemdMachine(folder: string): Promise<SystemdMachine> {
  mkdirSync(folder, { recursive: true })
  const tar = join(folder, 'debian.tar')
  await provideDebian(tar)
  // Also the name of a network interface, which takes 15 letters.
  const name = `ptr-sd-${process.pid}`
  const work = mkdtempSync(join(folder, 'machine-'))
  const root = join(work, 'root')
  mkdirSync(root)
  execFileSync('tar', ['-C', root, '-xf', tar])
  for (const file of ['/etc/resolv.conf', '/etc/ssl/certs/ca-certificates.crt'])
    execFileSync('cp', ['--dereference', file, join(root, file)])
  lane('lane_network', name, NETWORK)
  let starter: ChildProcess | undefined
  let first = 0
  const sh: SystemdMachine['sh'] = (script, env = {}) => {
    const inside = {
      HOME: '/root',
      LANG: 'C.UTF-8',
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    }
    const words = Object.entries({ ...inside, ...env }).map((pair) => pair.join('='))
    const enter = ['-t', String(first), '-m', '-u', '-i', '-n', '-p', '-C', '-r', '-w']
    const { status, stdout, stderr } = spawnSync(
      'nsenter',
      [...enter, 'env', '-i', ...words, 'bash', '-c', script],
      { encoding: 'utf8', maxBuffer: 2 ** 26 },
    )
    return { code: status ?? -1, output: stdout + stderr }
  }
  const machine: SystemdMachine = {
    root,
    address: `10.231.${NETWORK}.1`,
    sh,
    async boot() {
      const argv = ['bench/support/systemd-machine.sh', root, name, join(work, 'console'), name]
      starter = spawn('bash', argv, { stdio: 'ignore' })
      first = await eventually('The first process', () => firstProcessOf(starter!.pid!))
      await eventually('The end of the boot', () =>
        /^(running|degraded)/.test(sh('systemctl is-system-running').output) ? true : undefined,
      )
    },
    async powerOff() {
      if (!starter || starter.exitCode !== null || starter.signalCode !== null) return
      const ended = new Promise((resolve) => starter!.once('exit', resolve))
      // Node knows no signals of this kind.
      execFileSync('bash', ['-c', `kill -s ${POWER_OFF.slice(3)} ${first}`])
      await ended
    },
    async dispose() {
      await machine.powerOff()
      const trees = readdirSync('/sys/fs/cgroup', { withFileTypes: true }).filter((one) => one.isDirectory())
      for (const tree of ['', ...trees.map((one) => one.name)])
        removeGroups(join('/sys/fs/cgroup', tree, name))
      lane('lane_close', name, NETWORK)
      rmSync(work, { recursive: true, force: true })
    },
  }
  return machine
}

export const machineFolder = () => process.env.PORTREEVE_MACHINES ?? join(tmpdir(), 'portreeve-machines')
