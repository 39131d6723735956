import { setTimeout as delay } from 'node:timers/promises'
import type { Run } from '#server/kernel/process'
import { ClusterError } from './cluster.ts'
import { askEngine } from './inspect.ts'
import { output } from './remote-run.ts'
import type { Session } from './session.ts'

const MINUTE_MS = 60_000
const INSTALL_MS = 15 * MINUTE_MS
const PAUSE_MS = 1_000
const SETTINGS_FOLDER = '/etc/docker'
const SETTINGS = `${SETTINGS_FOLDER}/daemon.json`
/** Root of a container is nobody of the machine (docs/decisions/0115). */
const WITH_USERS = '{ "userns-remap": "default" }\n'
const PROGRAMS = ['/usr/sbin/dockerd', '/usr/bin/dockerd', '/usr/local/bin/dockerd']

/** What is done on the server, in the words of a person at its shell. */
function createHands(run: Run, signal: AbortSignal) {
  const holds = async (...argv: string[]) => (await run(argv, { cwd: '/', signal })).exit_code === 0
  const apt = (...args: string[]) =>
    output(run, ['apt-get', '--yes', '--quiet', ...args], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
      timeout_ms: INSTALL_MS,
      signal,
    })
  return {
    hasProgram: async () =>
      (await Promise.all(PROGRAMS.map((path) => holds('test', '-x', path)))).includes(true),
    update: () => apt('update'),
    install: () => apt('install', '--no-install-recommends', 'docker.io', 'iptables', 'iproute2'),
    start: () => run(['systemctl', 'enable', '--now', 'docker'], { cwd: '/', timeout_ms: MINUTE_MS, signal }),
    /**
     * Gives containers users of their own where the kernel can and nobody set up anything: what an
     * earlier engine left would be hidden by it. Answers whether it was done.
     */
    async giveUsers(): Promise<boolean> {
      if (await holds('test', '-e', SETTINGS)) return false
      if (await holds('test', '-e', '/var/lib/docker/overlay2')) return false
      if (!(await holds('unshare', '--user', 'true'))) return false
      await output(run, ['mkdir', '-p', SETTINGS_FOLDER], { signal })
      await output(run, ['tee', SETTINGS], { stdin: WITH_USERS, signal })
      return true
    },
    takeUsers: () => output(run, ['rm', SETTINGS], { signal }),
  }
}
type Hands = ReturnType<typeof createHands>

/** Installs the program, where the package may start it as well; answers whether its containers have users. */
async function installProgram(hands: Hands): Promise<boolean> {
  await hands.update()
  const has_users = await hands.giveUsers()
  try {
    await hands.install()
    return has_users
  } catch (error) {
    // Where the package starts the engine, one that cannot start is one that cannot be installed.
    if (!has_users) throw error
    await hands.takeUsers()
    await hands.install()
    return false
  }
}

/**
 * Installs the engine of the system's own packages where none answers. One that somebody has set up
 * is started and left as it is.
 * @param settle_ms how long an engine that was started may take to answer.
 */
export async function installEngineOn(
  session: Pick<Session, 'run' | 'openEngine'>,
  signal: AbortSignal,
  settle_ms = MINUTE_MS,
): Promise<void> {
  const answers = async () => (await askEngine(session)) !== undefined
  if (await answers()) return
  const hands = createHands(session.run, signal)
  let has_users = false
  try {
    if (!(await hands.hasProgram())) has_users = await installProgram(hands)
  } catch (cause) {
    if (cause instanceof ClusterError) throw cause
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new ClusterError('failed', `The container engine could not be installed: ${words}`, { cause })
  }
  const answersSoon = async (): Promise<boolean> => {
    await hands.start()
    const until = performance.now() + settle_ms
    while (!(await answers())) {
      if (performance.now() > until || signal.aborted) return false
      await delay(PAUSE_MS)
    }
    return true
  }
  if (await answersSoon()) return
  if (has_users && !signal.aborted) {
    await hands.takeUsers()
    if (await answersSoon()) return
  }
  throw new ClusterError('failed', 'The container engine was installed, but does not answer.', {
    hint: 'Look at journalctl -u docker on that server.',
  })
}
