import type { Instance } from '#server/platform/engine/engine'

/**
 * Ends of one instance within the window, after which it does not count as serving although the engine keeps
 * starting it.
 */
const LOOP = 3
const WINDOW_MS = 60_000
/**
 * An instance that is up for so long serves, and one that is down for so long is not about to come back by
 * itself.
 */
const STEADY_MS = 10_000
/**
 * Half the window: an instance that stays for less is called down by its third end, one that stays for longer
 * never is. So no app goes back and forth.
 */
const RECOVERED_MS = 30_000

/** What an app is called by how its instances fare; nothing when it keeps its name. */
export type Verdict =
  | { event: 'crash'; exit_code: number | null; oom_killed: boolean; error: string }
  | { event: 'recover' }
  | undefined

function reasonOf(exit_code: number | null, oom_killed: boolean): string {
  if (oom_killed)
    return 'Nothing of the app serves: it uses more memory than its limit, and is started again and again. Raise limits.memory_bytes, or make it use less.'
  const code = exit_code === null ? '' : ` with exit code ${exit_code}`
  return `Nothing of the app serves: it ends${code}, and is started again and again. Look at its log.`
}

/**
 * Tells apps that are crashed from those of which an instance ended: counts how often each instance was
 * started again lately, since the engine's own count is that of the container's whole life.
 */
export function createCrashes(now: () => number) {
  const known = new Map<string, { restart_count: number; restarts: number[] }>()

  const restarts = (id: string): number =>
    known.get(id)?.restarts.filter((at) => now() - at < WINDOW_MS).length ?? 0
  const since = (at: string | undefined): number => (at === undefined ? 0 : now() - Date.parse(at))
  const isDown = (instance: Instance): boolean =>
    instance.state === 'running'
      ? restarts(instance.id) >= LOOP && since(instance.started_at) < STEADY_MS
      : restarts(instance.id) + 1 >= LOOP || since(instance.finished_at) >= STEADY_MS
  const isBack = (instance: Instance): boolean =>
    instance.state === 'running' && since(instance.started_at) >= RECOVERED_MS

  return {
    /** Notes how often each of all instances was started again since the last time. */
    note(instances: readonly Instance[]): void {
      for (const id of known.keys()) if (!instances.some((instance) => instance.id === id)) known.delete(id)
      for (const { id, restart_count } of instances) {
        const before = known.get(id) ?? { restart_count, restarts: [] }
        const added = Math.min(Math.max(0, restart_count - before.restart_count), LOOP)
        known.set(id, {
          restart_count,
          restarts: [...before.restarts, ...Array.from({ length: added }, now)].slice(-LOOP),
        })
      }
    },
    /** An app is crashed when nothing of it serves, and has recovered once an instance of it stays. */
    evaluate(status: string, instances: readonly Instance[]): Verdict {
      if (instances.length === 0) return undefined
      if (status === 'running' && instances.every(isDown)) {
        const worst = instances.find(({ state }) => state !== 'running') ?? instances[0]!
        const { exit_code = null, oom_killed } = worst
        return { event: 'crash', exit_code, oom_killed, error: reasonOf(exit_code, oom_killed) }
      }
      return status === 'crashed' && instances.some(isBack) ? { event: 'recover' } : undefined
    },
  }
}
