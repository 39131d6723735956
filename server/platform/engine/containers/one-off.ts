import { setTimeout as pause } from 'node:timers/promises'
import type { Connection } from '../connection.ts'
import type { DiskRoom } from '../disk-room.ts'
import { containerBody } from './body.ts'
import type { Containers } from './containers.ts'
import { EngineError, type RunOnceSpec, type RunResult } from '../engine.ts'
import { aborted } from '../failures.ts'
import { isInstance, ownLabel } from '../labels.ts'
import { prepare } from './files.ts'
import { guardLayer } from './layer-guard.ts'
import { layerBytes } from './layer-size.ts'
import { createOneOffLogs, LOG_TAIL_MS } from './one-off-log.ts'
import { startError } from './start-failure.ts'
import type { Volumes } from '../volumes.ts'

type OneOffLog = ReturnType<ReturnType<typeof createOneOffLogs>>
interface Host {
  connection: Connection
  containers: Containers
  volumes: Volumes
  room: DiskRoom
  /** Bytes that a command may write beside its volumes; undefined for no limit. */
  limit_bytes: number | undefined
}

/** Asks an engine that does not answer again and again, as long as the caller has patience with it. */
type Patiently = <T>(ask: () => Promise<T>) => Promise<T>
const PAUSE_MS = 500
const isDown = (error: unknown) => error instanceof EngineError && error.code === 'unavailable'
function createPatience(patience_ms: number, signal: AbortSignal): Patiently {
  return async (ask) => {
    const began = performance.now()
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        if (!isDown(error) || signal.aborted || performance.now() - began >= patience_ms) throw error
        await pause(PAUSE_MS, undefined, { signal })
      }
    }
  }
}

/** Runs commands to their end in containers of their own. */
export function createOneOffs(host: Host) {
  const { containers, volumes } = host
  const logOf = createOneOffLogs(host)
  /** Names of what this process runs. */
  const under_way = new Set<string>()
  async function runNamed(name: string, spec: RunOnceSpec, signal: AbortSignal): Promise<RunResult> {
    const started = performance.now()
    const patiently = createPatience(spec.patience_ms ?? 0, signal)
    let has_ended = false
    await makeRoom(containers, name)
    try {
      await volumes.require(spec)
      const id = await containers.create(
        name,
        containerBody(containers.scope, spec, { labels: { run: spec.purpose } }),
        signal,
      )
      await prepare(host.connection, containers, { id, spec }, signal)
      await containers.start(id, signal)
      spec.onStarted?.()
      const log = logOf(id, spec.onLog)
      const { timed_out } = await watch(host, { id, spec, log, patiently }, signal)
      const info = timed_out ? undefined : await patiently(() => containers.find(id))
      has_ended = true
      return {
        exit_code: info?.State.ExitCode ?? 137,
        oom_killed: info?.State.OOMKilled ?? false,
        timed_out,
        duration_ms: Math.round(performance.now() - started),
      }
    } catch (error) {
      throw signal.aborted ? aborted('The command') : startError(error)
    } finally {
      // By name: a create that was cut off may have made the container without telling its id.
      await (has_ended ? patiently(() => containers.remove(name)) : containers.remove(name))
    }
  }
  return {
    async runOnce(spec: RunOnceSpec, signal: AbortSignal): Promise<RunResult> {
      if (signal.aborted) throw aborted('The command')
      const name = `${spec.release_id}-${spec.purpose}`
      under_way.add(name)
      try {
        return await runNamed(name, spec, signal)
      } finally {
        under_way.delete(name)
      }
    },
    /** Removes commands that nobody waits for: of a process that was killed, or that the engine did not remove. */
    async removeLeftRuns(): Promise<void> {
      for (const { Id, Names, Labels } of await containers.list({})) {
        if (ownLabel(Labels, 'run') === undefined || isInstance(Labels)) continue
        if (!(Names ?? []).some((name) => under_way.has(name.slice(1)))) await containers.remove(Id)
      }
    },
  }
}

/** Removes what an earlier attempt left under the name. */
async function makeRoom(containers: Containers, name: string): Promise<void> {
  const leftover = await containers.find(name)
  if (!leftover) return
  if (!containers.scope.owns(leftover.Config.Labels))
    throw new EngineError(
      'conflict',
      `A container named ${name} exists that Portreeve did not make.`,
      'Remove or rename it.',
    )
  await containers.remove(leftover.Id)
}

/**
 * Waits until a started command has ended. A connection that breaks ends no command: it goes on
 * where its engine does, as on another server that was not reached for a moment, and is waited for
 * again.
 */
async function untilEnded(
  { connection, containers }: Host,
  { id, patiently }: { id: string; patiently: Patiently },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await connection.call({
        method: 'POST',
        path: `/containers/${encodeURIComponent(id)}/wait`,
        query: { condition: 'not-running' },
        signal,
        deadline_ms: 0,
      })
      return
    } catch (error) {
      if (!isDown(error) || signal.aborted) throw error
      const info = await patiently(() => containers.find(id))
      if (!info?.State.Running) return
      await pause(PAUSE_MS, undefined, { signal })
    }
  }
}

/** Waits for the end of a started command and of its log, at most until its time limit. */
async function watch(
  host: Host,
  { id, spec, log, patiently }: { id: string; spec: RunOnceSpec; log: OneOffLog; patiently: Patiently },
  signal: AbortSignal,
): Promise<{ timed_out: boolean }> {
  const stop = new AbortController()
  const abort = () => stop.abort()
  signal.addEventListener('abort', abort, { once: true })
  let timed_out = false
  let excess: EngineError | undefined
  const timer = setTimeout(() => {
    timed_out = true
    stop.abort()
  }, spec.timeout_ms)
  const guard = guardLayer({
    limit_bytes: host.limit_bytes,
    measure: () => layerBytes(host.connection, id, stop.signal),
    isDiskFull: host.room.isFull,
    onExcess(error) {
      excess = error
      stop.abort()
    },
  })
  const following = log.follow(stop.signal)
  following.catch(() => {})
  try {
    await untilEnded(host, { id, patiently }, stop.signal)
  } catch (error) {
    if (!timed_out && !excess) throw error
  } finally {
    clearTimeout(timer)
    guard.stop()
  }
  const late = setTimeout(abort, timed_out || excess ? 0 : LOG_TAIL_MS)
  try {
    await following
  } catch (error) {
    // What was not read for that is asked for again.
    if (!stop.signal.aborted && !isDown(error)) throw error
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', abort)
  }
  if (excess) throw excess
  if (!signal.aborted) await patiently(() => log.finish())
  return { timed_out }
}
