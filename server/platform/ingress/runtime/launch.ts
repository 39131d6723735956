import { setTimeout as delay } from 'node:timers/promises'
import type { EdgeContainer } from './container.ts'
import type { MasterCli } from './master-cli.ts'
import type { IngressStatus } from '../ingress.ts'
import { IngressError } from '../ingress.ts'
import { findPortOwner } from '../port-owner.ts'

/** Brings the edge up and tells what is wrong when it does not come. */
export interface EdgeLauncher {
  /**
   * Resolves once the edge carries traffic; true when this call started it, so that it read the files just
   * now.
   */
  ensure(signal?: AbortSignal): Promise<boolean>
  status(): Promise<Omit<IngressStatus, 'refused'>>
}

const ANSWER_WITHIN_MS = 15_000
/**
 * How long the engine may take to start again an edge that died just now, e.g. since its former workers still
 * had the ports.
 */
const RESTART_WITHIN_MS = 4_000
const POLL_MS = 25

export function createEdgeLauncher({
  container,
  cli,
  ports,
}: {
  container: EdgeContainer
  cli: MasterCli
  ports: Record<string, number>
}): EdgeLauncher {
  /** Throws when another program has one of the ports; the variable that sets the port is named with it. */
  async function refuseTakenPort(): Promise<void> {
    for (const [variable, port] of Object.entries(ports)) {
      const owner = await findPortOwner(port)
      if (owner !== undefined)
        throw new IngressError(`Port ${port} is in use by ${owner}; free it or set ${variable}.`)
    }
  }

  /** The same as a value: which port another program has, if any. */
  const takenPort = (): Promise<IngressError | undefined> =>
    refuseTakenPort().then(
      () => undefined,
      (refusal: unknown) => {
        if (refusal instanceof IngressError) return refusal
        throw refusal
      },
    )

  async function answers(): Promise<boolean> {
    try {
      return (await cli.workers()).some((worker) => !worker.old)
    } catch (error) {
      if (error instanceof IngressError) return false
      throw error
    }
  }

  /** Why the container that should run does not: in words of its user, where its own can be understood. */
  async function explain(): Promise<IngressError> {
    const taken = await takenPort()
    if (taken) return taken
    const words = await container.lastWords()
    const alert = words
      .split('\n')
      .findLast((line) => line.includes('[ALERT]'))
      ?.replace(/^\[ALERT\]\s*\(\d+\)\s*:\s*/, '')
    return new IngressError(`The edge does not start${alert ? `: ${alert}` : '; its log says no reason.'}`)
  }

  async function waitForAnswer(signal?: AbortSignal): Promise<boolean> {
    const started = performance.now()
    while (performance.now() < started + ANSWER_WITHIN_MS) {
      if (await answers()) return true
      const { running, restarting } = await container.state()
      if ((!running || restarting) && performance.now() > started + RESTART_WITHIN_MS) throw await explain()
      await delay(POLL_MS, undefined, { signal })
    }
    return false
  }

  /** Why the edge does not answer. */
  async function silence(): Promise<string> {
    const { exists, running } = await container.state().catch(() => ({ exists: true, running: true }))
    if (!exists) return (await takenPort())?.message ?? 'The edge has no container yet.'
    return running ? 'The edge does not answer.' : (await explain()).message
  }

  return {
    async ensure(signal) {
      const started = await container.start(refuseTakenPort, signal)
      if (await waitForAnswer(signal)) return started
      await container.restart()
      if (await waitForAnswer(signal)) return true
      throw await explain()
    },
    async status() {
      if (await answers())
        return {
          running: true,
          version: /^Version: (\S+)/m.exec(await cli.run(['show info']))?.[1],
        }
      return { running: false, message: await silence() }
    },
  }
}
