import type { Log } from '#server/kernel/log'
import type { Engine, Instance, LogLine } from './engine.ts'
import type { Owner } from './workload.ts'

/** Lines of an instance that starts while its owner is followed: all that it may have printed by then. */
const NEW_INSTANCE_LINES = 10_000

/**
 * Hands on lines of every instance of an owner as they come, also of instances that start later, until the
 * signal aborts.
 */
export async function followLogs(
  { engine, log }: { engine: Engine; log: Log },
  owner: Owner,
  tail: number,
  signal: AbortSignal,
  onLine: (instance_id: string, line: LogLine) => void,
): Promise<void> {
  const followed = new Set<string>()
  const follow = async (instance: Instance, lines: number) => {
    for await (const line of engine.logs(instance.id, { tail: lines, follow: true }, signal))
      onLine(instance.id, line)
  }
  const look = async (lines: number) => {
    for (const instance of await engine.instances({ owner })) {
      if (followed.has(instance.id)) continue
      followed.add(instance.id)
      void follow(instance, lines)
        .catch((error: unknown) => {
          if (!signal.aborted) log.debug('Following a log ended', { instance: instance.id, error })
        })
        .finally(() => followed.delete(instance.id))
    }
  }
  await look(tail)
  for await (const event of engine.events(signal))
    if (event.kind === 'start' && event.owner?.kind === owner.kind && event.owner.id === owner.id)
      await look(NEW_INSTANCE_LINES)
}
