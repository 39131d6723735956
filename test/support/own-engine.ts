import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Docker from 'dockerode'
import { poll } from './poll.ts'

/** Whether this machine lets a test start a container engine of its own. */
export const canStartEngine =
  process.getuid?.() === 0 &&
  ['/usr/sbin/dockerd', '/usr/bin/dockerd'].some((path) => existsSync(path)) &&
  existsSync('/usr/bin/nsenter')

const mountsBelow = (folder: string): string[] =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((place) => place.startsWith(`${folder}/`))
    .reverse()

/** A container engine of a test's own, that it may kill: own network namespace, data and socket. */
export async function startOwnEngine(...extra: string[]) {
  // Not below /tmp, which may be a file system that images cannot be stored on.
  const parent = '/var/tmp'
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'portreeve-engine-'))
  // Containers with users of their own have to pass through it.
  chmodSync(folder, 0o711)
  const namespace = `pt-${process.pid}-${readdirSync(parent).length}`
  const socket = join(folder, 'docker.sock')
  writeFileSync(
    join(folder, 'daemon.json'),
    JSON.stringify({ 'deprecated-key-path': join(folder, 'key.json') }),
  )
  execFileSync('ip', ['netns', 'add', namespace])
  execFileSync('ip', ['-n', namespace, 'link', 'set', 'lo', 'up'])
  const docker = new Docker({ socketPath: socket })
  let daemon: ChildProcess

  async function start(): Promise<void> {
    daemon = spawn(
      'nsenter',
      [
        `--net=/run/netns/${namespace}`,
        'dockerd',
        '--config-file',
        join(folder, 'daemon.json'),
        '--data-root',
        join(folder, 'data'),
        '--exec-root',
        join(folder, 'exec'),
        '--pidfile',
        join(folder, 'docker.pid'),
        '-H',
        `unix://${socket}`,
        '--bip',
        '172.31.255.1/24',
        ...extra,
      ],
      { stdio: 'ignore' },
    )
    await poll(
      async () =>
        docker.ping().then(
          () => true,
          () => false,
        ),
      60_000,
    )
  }
  async function end(signal: NodeJS.Signals): Promise<void> {
    const ended = new Promise((resolve) => daemon.once('exit', resolve))
    daemon.kill(signal)
    await ended
  }
  await start()
  return {
    docker,
    docker_host: `unix://${socket}`,
    /** The network in which it works, for `ip -n` and `nsenter`. */
    namespace,
    /** Ends the engine and starts it again; without live-restore its containers end with it. */
    async restart(): Promise<void> {
      await end('SIGTERM')
      await start()
    },
    async close(): Promise<void> {
      for (const { Id } of await docker.listContainers({ all: true }))
        await docker.getContainer(Id).remove({ force: true })
      await end('SIGTERM')
      execFileSync('ip', ['netns', 'del', namespace])
      // An engine whose containers have users of their own mounts its data folder on itself, and leaves that behind.
      for (const mounted of mountsBelow(folder)) execFileSync('umount', ['--lazy', mounted])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
