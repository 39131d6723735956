import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '#test/support/portreeve'

/** A Docker engine of our own that may be killed: its data, socket, bridge and cgroup are nobody else's. */
export interface OwnEngine {
  /** For DOCKER_HOST. */
  host: string
  start(): Promise<void>
  /** kill -9 of the daemon alone: its containers live on. */
  kill(): Promise<void>
  /** Copies images from the engine that DOCKER_HOST names, or that of the machine. */
  load(...images: string[]): void
  close(): Promise<void>
}

const DOCKER = '/usr/bin/docker'

/** What the kernel tells of a process; undefined once there is none. */
function statusOf(pid: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return undefined
  }
}

/**
 * Must run in a network namespace of its own: two daemons in one would tear at the same firewall rules.
 * `inOwnNetwork` sees to that.
 */
export async function createOwnEngine(): Promise<OwnEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'own-engine-'))
  const [data, exec, socket] = [join(folder, 'data'), join(folder, 'exec'), join(folder, 'docker.sock')]
  for (const path of [data, exec]) mkdirSync(path)
  const host = `unix://${socket}`
  writeFileSync(
    join(folder, 'daemon.json'),
    JSON.stringify({ 'live-restore': true, 'deprecated-key-path': join(folder, 'key.json') }),
  )
  const log = openSync(join(folder, 'log'), 'a')
  let daemon: ChildProcess | undefined
  const answers = () => {
    try {
      execFileSync(DOCKER, ['-H', host, 'version'], { stdio: 'ignore' })
      return true
    } catch {
      return undefined
    }
  }
  const ended = (child: ChildProcess) =>
    new Promise<void>((resolve) =>
      child.exitCode !== null || child.signalCode !== null ? resolve() : child.once('exit', () => resolve()),
    )
  return {
    host,
    async start() {
      rmSync(join(folder, 'docker.pid'), { force: true })
      daemon = spawn(
        'dockerd',
        [
          '--config-file',
          join(folder, 'daemon.json'),
          '--data-root',
          data,
          '--exec-root',
          exec,
          '--pidfile',
          join(folder, 'docker.pid'),
          '-H',
          host,
          '--cgroup-parent',
          `/own-engine-${process.pid}`,
          '--bip',
          '172.29.77.1/24',
        ],
        { stdio: ['ignore', log, log] },
      )
      await eventually('The engine answering', answers, 60_000)
    },
    async kill() {
      const keeper = join(exec, 'containerd/containerd.pid')
      const pid = readFileSync(keeper, 'utf8').trim()
      daemon!.kill('SIGKILL')
      await ended(daemon!)
      // It dies with its daemon, a moment later: one that is still there would be taken for one that lives on.
      const isGone = () => /^State:\s+Z/m.test(statusOf(pid) ?? 'State: Z') || undefined
      await eventually('The end of containerd', isGone, 60_000)
      rmSync(keeper, { force: true })
    },
    load(...images) {
      const archive = join(folder, 'images.tar')
      execFileSync(DOCKER, ['save', '-o', archive, ...images])
      execFileSync(DOCKER, ['-H', host, 'load', '-q', '-i', archive], { stdio: 'ignore' })
      rmSync(archive)
    },
    async close() {
      const left = execFileSync(DOCKER, ['-H', host, 'ps', '-aq'], { encoding: 'utf8' })
        .split('\n')
        .filter(Boolean)
      if (left.length > 0) execFileSync(DOCKER, ['-H', host, 'rm', '-f', ...left], { stdio: 'ignore' })
      daemon!.kill('SIGTERM')
      await ended(daemon!)
      // A killed daemon left the mounts of its network and of its layers.
      const mounts = readFileSync('/proc/mounts', 'utf8')
        .split('\n')
        .map((line) => line.split(' ')[1] ?? '')
        .filter((path) => path.startsWith(`${folder}/`))
      for (const mount of mounts.toReversed()) execFileSync('umount', ['-l', mount])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Runs this program again inside a new network namespace and ends with its exit code; does nothing when it is
 * in there already.
 */
export function inOwnNetwork(): void {
  if (process.env.BENCH_OWN_NETWORK === '1') {
    execFileSync('ip', ['link', 'set', 'lo', 'up'])
    return
  }
  // The mounts stay those of the machine, so that the cgroups below /sys are there.
  const child = spawn('unshare', ['--net', process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, BENCH_OWN_NETWORK: '1' },
  })
  child.once('exit', (code) => process.exit(code ?? 1))
}
