import { join } from 'node:path'
import { setImmediate as pause } from 'node:timers/promises'
import type { ChannelLog } from '#server/kernel/channels'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Log } from '#server/kernel/log'
import { redactor, redactorSoon } from '#server/kernel/redact'
import type { Engine } from '#server/platform/engine/engine'
import type { Owner } from '#server/platform/engine/workload'
import { createCollector } from './collector.ts'
import { readLines, shownLine } from './reader.ts'
import type { LineQuery, LogLine } from './schema.ts'
import { createPrintShares } from './shares.ts'
import { createRuntimeStore } from './store.ts'

const DAY_MS = 86_400_000
/** All logs together. */
const MAX_BYTES = 4 * 1024 ** 3
type Noun = 'app' | 'database'

export interface RuntimeLogsOptions {
  db: Pick<Db, 'state'>
  engine: Engine
  clock: Clock
  log: Log
  data_directory: string
  limits(): { runtime_log_max_bytes: number; runtime_log_retention_days: number }
  /** Values that must not show up in the log of an owner. */
  secrets(noun: Noun, id: string): readonly string[]
  /** The same, with others served while they are read. */
  secretsSoon(noun: Noun, id: string): Promise<readonly string[]>
  deploymentOf(release_id: string): string | null
  exists(id: string): boolean
  projectOf(owner: Owner): string
}

/** What instances of apps and databases printed: kept beyond their ends, within a bound, without secrets. */
export function createRuntimeLogs(options: RuntimeLogsOptions) {
  const { clock, log, limits } = options
  const store = createRuntimeStore(
    join(options.data_directory, 'logs', 'runtime'),
    () => limits().runtime_log_max_bytes,
  )
  let newest: { of: string; redact: (text: string) => string } | undefined
  /** A channel reads a log page by page: what is secret is asked for again only once something was written. */
  const redactOf = (noun: Noun, id: string) => {
    const of = `${noun} ${id} ${options.db.state()}`
    if (newest?.of !== of) newest = { of, redact: redactor(options.secrets(noun, id)) }
    return newest.redact
  }
  const collector = createCollector({
    ...options,
    store,
    shares: createPrintShares(clock),
    redactor: async ({ owner }) =>
      redactorSoon(await options.secretsSoon(owner.kind === 'database' ? 'database' : 'app', owner.id)),
  })
  const oldest = () => new Date(clock.now() - limits().runtime_log_retention_days * DAY_MS).toISOString()
  /** What is kept can be read whatever the engine does, and whatever becomes of an instance meanwhile. */
  const attend = (noun: Noun, id: string, stays?: boolean): Promise<void> =>
    collector.attend({ kind: noun, id }, stays).catch((error: unknown) => {
      log.debug('A log is shown as it is kept', { of: id, error })
    })

  return {
    async read(noun: Noun, id: string, query: LineQuery): Promise<LogLine[]> {
      await attend(noun, id)
      store.flush(id)
      const redact = await redactorSoon(await options.secretsSoon(noun, id))
      return readLines(store.segments, id, query, { redact, oldest_at: oldest() })
    },
    /** The log as a channel follows it. */
    channel: (noun: Noun): ChannelLog => ({
      latest: (id) => store.latest(id),
      after: (id, seq, limit) => {
        const redact = redactOf(noun, id)
        return store.page(id, seq, limit).map((line) => shownLine({ ...line, text: redact(line.text) }))
      },
      subscribe(id, listener) {
        void attend(noun, id, true)
        return store.subscribe(id, (line) => listener(shownLine(line)))
      },
    }),
    remove: (id: string): void => store.remove(id),
    /** Removes what is past its days, and what nothing is left of. */
    async prune(): Promise<number> {
      const { segments } = store
      for (const id of segments.ids()) {
        if (!options.exists(id)) store.remove(id)
        await pause()
      }
      const before = clock.now() - limits().runtime_log_retention_days * DAY_MS
      return segments.prune(before)
    },
    /** Keeps all logs together within their bound: what is above goes of the project that has most. */
    shrink: (): Promise<number> =>
      store.segments.shrink(MAX_BYTES, (id) =>
        options.projectOf({ kind: id.startsWith('app_') ? 'app' : 'database', id }),
      ),
    start: () => collector.start(),
    stop(): void {
      collector.stop()
      store.flush()
    },
  }
}
export type RuntimeLogs = ReturnType<typeof createRuntimeLogs>
