import { networkOf } from '#server/platform/engine/network-name'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Instance } from '#server/platform/engine/engine'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import { processesOf } from './processes.ts'
import { waitUntilReady } from './probe.ts'
import type { Release, ReleaseProcess } from './releases.ts'
import { workloadOf } from './release-workload.ts'
import { drainInstances } from './serving.ts'
import type { Scaler, DeployContext } from './work.ts'

const WATCH_MS = 400
const ENDED: readonly Instance['state'][] = ['exited', 'dead', 'restarting']

/** Processes of a live release with as many instances as there should be now: an app that sleeps has no web. */
export const desiredProcesses = (
  context: Pick<DeployContext, 'ports'>,
  release: Pick<Release, 'app_id' | 'settings'>,
): ReleaseProcess[] => {
  const asleep = context.ports.isAsleep(release.app_id)
  return processesOf(release.settings).map((process) =>
    asleep && process.name === MAIN_PROCESS ? { ...process, replicas: 0 } : process,
  )
}

interface Work {
  /** What this pass is to reach. */
  wanted: string
  stop: AbortController
  again: boolean
  done: Promise<void>
}

export function createScaler(context: DeployContext, settled: () => void): Scaler {
  const working = new Map<string, Work>()
  let is_stopped = false

  /** The live release of an app that no job is about to change; nothing when there is none. */
  const scalable = (app_id: string): Release | undefined => {
    const { status, live_release_id } = context.apps.get(app_id)
    const is_meant_to_run = status === 'running' || status === 'crashed'
    if (!is_meant_to_run || !live_release_id || context.ports.isHeld(app_id)) return undefined
    const release = context.releases.find(live_release_id)
    // Services of a stack have the instances that its file says.
    return release?.settings.stack ? undefined : release
  }
  const keyOf = (app_id: string): string => {
    const release = scalable(app_id)
    return JSON.stringify(release && [release.id, desiredProcesses(context, release), release.settings])
  }

  const run = async (app_id: string, work: Work): Promise<void> => {
    try {
      do {
        work.again = false
        work.stop = new AbortController()
        work.wanted = keyOf(app_id)
        const release = scalable(app_id)
        if (!release) return
        await createPass(context, release, work.stop.signal).catch((error: unknown) => {
          if (!work.stop.signal.aborted) throw error
        })
      } while (work.again)
    } finally {
      working.delete(app_id)
      settled()
    }
  }

  const interrupt = async (app_id: string): Promise<void> => {
    const known = working.get(app_id)
    if (!known) return
    known.again = false
    known.stop.abort()
    await known.done.catch(() => undefined)
  }

  return {
    async settle(app_id) {
      if (is_stopped) return
      const known = working.get(app_id)
      if (known) {
        if (known.wanted !== keyOf(app_id)) {
          known.again = true
          known.stop.abort()
        }
        return known.done
      }
      const work: Work = {
        wanted: '',
        stop: new AbortController(),
        again: false,
        done: Promise.resolve(),
      }
      working.set(app_id, work)
      work.done = run(app_id, work)
      return work.done
    },
    isWorking: (app_id) => working.has(app_id),
    interrupt,
    async stop() {
      is_stopped = true
      await Promise.all([...working.keys()].map(interrupt))
    },
  }
}

/** One pass: those that go lose their traffic first, those that come get it once they are ready. */
async function createPass(context: DeployContext, release: Release, signal: AbortSignal): Promise<void> {
  const { engine, routing } = context
  const { app_id, settings } = release
  const place = context.apps.get(app_id)
  const desired = desiredProcesses(context, release)
  /** A switch that came first is not taken back. */
  const serve = async (addresses: string[]) => {
    if (signal.aborted || context.apps.get(app_id).live_release_id !== release.id) return
    await routing.serve(app_id, { addresses, port: settings.port })
  }
  const ensure = (process: ReleaseProcess) =>
    engine.ensureRelease(workloadOf(context.releases, release, place, process), signal)

  const before = await engine.instances({ release_id: release.id })
  const countOf = (process: string) => desired.find(({ name }) => name === process)?.replicas ?? 0
  const going = before.filter(({ index, process }) => index >= countOf(process))
  const leaving = new Set(webAddresses(going))
  const serving = new Set(routing.serving(app_id).filter((address) => !leaving.has(address)))
  await engine.ensureNetwork(networkOf(place), { project: place.project_id })
  const made: Instance[] = []
  for (const process of desired) {
    // Those that go are still there: they end their requests while others are started.
    const indexes = going.filter((one) => one.process === process.name).map(({ index }) => index + 1)
    made.push(...(await ensure({ ...process, replicas: Math.max(process.replicas, ...indexes) })))
  }
  await engine.superviseRelease(release.id, true)
  const staying = made.filter(({ index, process }) => index < countOf(process))
  // Of those that served before only what is still there; at zero the route says that it waits for a request.
  const ready = webAddresses(staying).filter((address) => serving.has(address))
  await serve([...ready])
  const fresh = staying.filter(
    ({ process, address }) => process === MAIN_PROCESS && !(address && serving.has(address)),
  )
  await whenReady(context, release, fresh, signal, async ({ address }) => {
    ready.push(address!)
    await serve([...ready])
  })
  if (going.length === 0) return
  await drainInstances(context, release, going, signal)
  signal.throwIfAborted()
  for (const process of desired) await ensure(process)
}

const webAddresses = (instances: readonly Instance[]): string[] =>
  instances.flatMap(({ address, process }) => (address && process === MAIN_PROCESS ? [address] : []))

/** Probes instances from outside, and tells of each as soon as it is ready. Rejects when one ends instead. */
async function whenReady(
  context: DeployContext,
  { id, settings }: Release,
  fresh: readonly Instance[],
  signal: AbortSignal,
  onReady: (instance: Instance) => Promise<void>,
): Promise<void> {
  if (fresh.length === 0) return
  const { port, health_check } = settings
  const over = new AbortController()
  const probing = AbortSignal.any([signal, over.signal])
  const probes = Promise.all(
    fresh.map(async (instance) => {
      const { ready, last } = await waitUntilReady(
        instance.address ?? '',
        port,
        health_check,
        probing,
        context.clock.monotonic_ms,
      )
      if (!ready)
        throw new Fatal(
          'not_ready',
          `Instance ${instance.index} did not become ready within ${health_check.grace_s} seconds: ${last}.`,
          'It gets no requests. Look at the log of the app.',
        )
      await onReady(instance)
    }),
  )
  const ids = new Set(fresh.map((instance) => instance.id))
  try {
    await Promise.race([probes, untilOneEnds(context, id, ids, probing)])
  } finally {
    over.abort()
    await probes.catch(() => undefined)
  }
}

/** Rejects once one of these instances has ended; until then it does not settle. */
function untilOneEnds(
  { engine }: Pick<DeployContext, 'engine'>,
  release_id: string,
  ids: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<never> {
  return new Promise((_resolve, reject) => {
    const look = async () => {
      if (signal.aborted) return
      const instances = await engine.instances({ release_id }).catch(() => [])
      const ended = instances.find((one) => ids.has(one.id) && ENDED.includes(one.state))
      if (ended)
        return reject(
          new Fatal(
            ended.oom_killed ? 'out_of_memory' : 'exited',
            ended.oom_killed
              ? 'An instance was ended before it was ready because it used more memory than its limit.'
              : `An instance exited with code ${ended.exit_code ?? 1} before it was ready.`,
            'Look at the log of the app.',
          ),
        )
      timer = setTimeout(() => void look(), WATCH_MS)
    }
    let timer = setTimeout(() => void look(), WATCH_MS)
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  })
}
