import { inMilliseconds } from '#server/kernel/clock'
import { engineUnavailable } from '#server/kernel/errors'
import { redactor } from '#server/kernel/redact'
import { EngineError, type LogLine } from '#server/platform/engine/engine'
import { followLogs } from '#server/platform/engine/follow-logs'
import type { Owner } from '#server/platform/engine/workload'
import type { DatabaseContext } from './context.ts'
import type { DatabaseLogLine, DatabaseLogQuery } from './schema.ts'

const SEARCHED_LINES = 5000
const ownerOf = (id: string): Owner => ({ kind: 'database', id })

/** What the servers of databases print: kept by the engine in bounded files, shown without passwords. */
export function createDatabaseLogs({ engine, repository, vault, get, log }: DatabaseContext) {
  const redactOf = (id: string) => {
    const row = repository.find(id)
    return redactor(row ? vault.readable(row) : [])
  }
  return {
    /** Newest lines, oldest first. */
    async read(id: string, query: DatabaseLogQuery): Promise<DatabaseLogLine[]> {
      const redact = redactOf(get(id).id)
      const text = query.q?.toLowerCase()
      const { since, until } = query
      const lines: LogLine[] = []
      try {
        for (const instance of await engine.instances({ owner: ownerOf(id) }))
          for await (const line of engine.logs(instance.id, {
            tail: text ? SEARCHED_LINES : query.tail,
            ...(since === undefined ? {} : { since }),
            ...(until === undefined ? {} : { until }),
          }))
            if (!text || line.text.toLowerCase().includes(text)) lines.push(line)
      } catch (error) {
        if (error instanceof EngineError && error.code === 'unavailable') throw engineUnavailable()
        throw error
      }
      return lines
        .sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
        .slice(-query.tail)
        .map((line) => ({ ...line, text: redact(line.text), at: inMilliseconds(line.at) }))
    },
    /** Lines as they come, also of servers that start later, until the signal aborts. */
    async follow(
      id: string,
      tail: number,
      signal: AbortSignal,
      onLine: (instance_id: string, line: LogLine) => void,
    ): Promise<void> {
      const redact = redactOf(id)
      await followLogs({ engine, log }, ownerOf(id), tail, signal, (instance_id, line) =>
        onLine(instance_id, { ...line, text: redact(line.text) }),
      )
    },
  }
}
