import { existsSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { dirname } from 'node:path'
import { run } from '#server/kernel/process'
import { createConnection } from '#server/platform/engine/connection'
import { CommandError, say } from '../terminal.ts'
import { hasSystemd } from './service.ts'

const MIB = 1024 ** 2
/** Less, and the server or the first build is ended by the kernel. */
const LEAST_MEMORY = 700 * MIB
/** The edge, base images and one app. */
const LEAST_DISK = 3 * 1024 * MIB
const WRITTEN = Date.UTC(2026, 0, 1)
const ENGINE_MS = 5000
const INSTALL_MS = 900_000

const ENGINE_SETTINGS = '/etc/docker/daemon.json'

const nearest = (path: string): string => (existsSync(path) ? path : nearest(dirname(path)))

/** Throws one sentence about what keeps Portreeve from running here, before anything is changed. */
export function requireMachine(data: string): void {
  if (process.getuid?.() !== 0)
    throw new CommandError(
      'Run this as root: it installs packages, starts a service and sets rules of the firewall.',
    )
  if (process.platform !== 'linux') throw new CommandError('Portreeve runs on Linux only.')
  if (totalmem() < LEAST_MEMORY)
    throw new CommandError(
      `This machine has ${Math.floor(totalmem() / MIB)} MiB of memory; 700 MiB are needed.`,
    )
  const { bavail, bsize } = statfsSync(nearest(data))
  if (bavail * bsize < LEAST_DISK)
    throw new CommandError(
      `The disk of ${nearest(data)} has ${Math.floor((bavail * bsize) / MIB)} MiB free; 3072 MiB are needed.`,
    )
  if (Date.now() < WRITTEN)
    throw new CommandError(
      'The clock of this machine is years behind. Set it first: certificates and logins go by it.',
    )
}

async function engineAnswers(docker_host: string): Promise<boolean> {
  const connection = createConnection(docker_host)
  try {
    await connection.call({ path: '/version', deadline_ms: ENGINE_MS })
    return true
  } catch {
    return false
  } finally {
    await connection.close()
  }
}

async function apt(...words: string[]): Promise<boolean> {
  const env = { DEBIAN_FRONTEND: 'noninteractive' }
  const { exit_code } = await run(['apt-get', ...words], { cwd: '/', env, timeout_ms: INSTALL_MS })
  return exit_code === 0
}

const isDebian = () =>
  existsSync('/etc/os-release') &&
  /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readFileSync('/etc/os-release', 'utf8'))

/** Programs that the server calls, and their packages: nothing is cloned without git. */
const NEEDED = { '/usr/bin/git': 'git' }
/** Keys of private repositories, and name servers that take signed updates. */
const USEFUL = { '/usr/bin/ssh': 'openssh-client', '/usr/bin/nsupdate': 'bind9-dnsutils' }
const missingOf = (packages: Record<string, string>) =>
  Object.entries(packages).flatMap(([file, name]) => (existsSync(file) ? [] : [name]))

const hasEngine = () => existsSync('/usr/bin/dockerd') || existsSync('/usr/sbin/dockerd')

const PLAIN_ENGINE = '{ "live-restore": true }\n'
/** Root of a container is nobody of the machine (docs/decisions/0115). */
const ENGINE_WITH_USERS = '{ "live-restore": true, "userns-remap": "default" }\n'

/**
 * How an engine that we install is set up: it keeps containers running while it is restarted, and gives them users of
 * their own where the kernel can. That of somebody else is left as it is: then the answer is false.
 */
async function setUpEngine(): Promise<boolean> {
  if (existsSync(ENGINE_SETTINGS)) return false
  mkdirSync(dirname(ENGINE_SETTINGS), { recursive: true })
  const { exit_code } = await run(['unshare', '--user', 'true'], { cwd: '/', timeout_ms: ENGINE_MS })
  // What an earlier engine left would be hidden by it.
  const has_users = exit_code === 0 && !existsSync('/var/lib/docker/overlay2')
  writeFileSync(ENGINE_SETTINGS, has_users ? ENGINE_WITH_USERS : PLAIN_ENGINE)
  return has_users
}

async function startEngine(): Promise<void> {
  if (!hasSystemd()) return
  await run(['systemctl', 'enable', '--now', 'docker'], { cwd: '/', timeout_ms: ENGINE_MS * 12 })
}
/** Takes users of their own from an engine that does not start with them, and in which nobody has anything yet. */
async function giveIn(): Promise<true> {
  writeFileSync(ENGINE_SETTINGS, PLAIN_ENGINE)
  await startEngine()
  return true
}

/** Installs and starts the engine where none answers, and what the server calls; answers what was done. */
export async function ensureEngine(docker_host: string): Promise<string[]> {
  const missing = [...missingOf(NEEDED), ...(isDebian() ? missingOf(USEFUL) : [])]
  const answers = await engineAnswers(docker_host)
  let has_users = false
  if (!answers && !hasEngine()) {
    missing.push('docker.io', 'iptables')
    if (isDebian()) has_users = await setUpEngine()
  }
  if (missing.length > 0) {
    if (!isDebian())
      throw new CommandError(
        `${missing.join(', ')} is missing, and only Debian and Ubuntu are known here. Install it, then call this again.`,
      )
    say(`Installing ${missing.join(', ')}.`)
    const install = ['install', '--yes', '--quiet', '--no-install-recommends', ...missing]
    const isInstalled = async () =>
      (await apt(...install)) || ((await apt('update', '--quiet')) && (await apt(...install)))
    // Where the package starts the engine, one that cannot start is one that cannot be installed.
    if (!(await isInstalled()) && !(has_users && hasEngine() && (await giveIn()) && (await isInstalled())))
      throw new CommandError(`${missing.join(', ')} could not be installed; apt-get tells why.`)
  }
  const done = missing.map((name) => `Installed ${name}.`)
  if (answers || (await engineAnswers(docker_host))) return done
  await startEngine()
  if (!(await engineAnswers(docker_host)) && has_users) await giveIn()
  if (!(await engineAnswers(docker_host)))
    throw new CommandError(
      `The container engine does not answer at ${docker_host}. Start it, then call this again.`,
    )
  return [...done, 'Started the container engine.']
}
