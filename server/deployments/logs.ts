import { appendFileSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { lastLines, linesAfter } from '#server/kernel/ndjson'
import type { Clock } from '#server/kernel/clock'
import { createPace } from '#server/kernel/pace'
import { redactor, redactorSoon } from '#server/kernel/redact'
import { levelOf } from '#server/kernel/log-level'
import type { LogLine } from '#server/runtime-logs/schema'

/** Log of one deployment is cut here; the deployment goes on. */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_LINE = 8192
const FLUSH_MS = 100
/** Lines of one answer. */
const MOST_READ = 10_000

interface OpenLog {
  seq: number
  bytes: number
  pending: string[]
  cut: boolean
  redact(text: string): string
}
/** As it is on disk; the rest of a `LogLine` follows from it. */
interface StoredLine {
  seq: number
  at: string
  step: string
  stream: 'stdout' | 'stderr' | 'system'
  text: string
}
/** Which lines are read: those after a number, else the newest. */
export interface LogPage {
  after?: number | undefined
  tail?: number | undefined
}
export type LogListener = (line: LogLine) => void

/** Tools say how far they are on stderr, so that only the words of a line tell how grave it is. */
const lineOf = (deployment_id: string, line: StoredLine): LogLine => ({
  ...line,
  level: levelOf(line.text, 'stdout'),
  source: line.step,
  deployment_id,
})

/**
 * Build and release logs: one file of JSON lines per deployment, written as they come. Known secrets are
 * taken out before a line is stored or streamed.
 * @param secretsOf Values that must never show up in the log of a deployment.
 */
export function createDeploymentLogs(
  directory: string,
  clock: Clock,
  secretsOf: (deployment_id: string) => readonly string[] = () => [],
) {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const open = new Map<string, OpenLog>()
  const listeners = new Map<string, Set<LogListener>>()
  let timer: NodeJS.Timeout | undefined
  const path = (deployment_id: string) => join(directory, `${deployment_id}.ndjson`)

  const opened = (deployment_id: string): OpenLog => {
    const known = open.get(deployment_id)
    if (known) return known
    const bytes = statSync(path(deployment_id), { throwIfNoEntry: false })?.size ?? 0
    const created: OpenLog = {
      seq: lastLines<StoredLine>(path(deployment_id), 1)[0]?.seq ?? 0,
      bytes,
      pending: [],
      cut: false,
      redact: redactor(secretsOf(deployment_id)),
    }
    if (bytes > 0) created.pending.push('\n')
    open.set(deployment_id, created)
    return created
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    for (const [deployment_id, log] of open) {
      if (log.pending.length === 0) continue
      try {
        appendFileSync(path(deployment_id), log.pending.join(''), { mode: 0o600 })
        log.pending.length = 0
      } catch {
        // A full disk must not end the server; the lines are kept, within the log's limit, and written with
        // the next one.
      }
    }
  }

  const write = (deployment_id: string, log: OpenLog, line: Omit<StoredLine, 'seq' | 'at'>) => {
    const full: StoredLine = { seq: (log.seq += 1), at: clock.iso(), ...line }
    const text = `${JSON.stringify(full)}\n`
    log.bytes += Buffer.byteLength(text)
    log.pending.push(text)
    timer ??= setTimeout(flush, FLUSH_MS)
    for (const listener of listeners.get(deployment_id) ?? []) listener(lineOf(deployment_id, full))
  }

  return {
    append(deployment_id: string, step: string, stream: StoredLine['stream'], text: string) {
      const log = opened(deployment_id)
      if (log.cut) return
      if (log.bytes > MAX_BYTES) {
        log.cut = true
        write(deployment_id, log, {
          step,
          stream: 'system',
          text: `The log is longer than ${MAX_BYTES / 1024 / 1024} MiB; what follows is not kept.`,
        })
        return
      }
      for (const part of text.replace(/\r?\n$/, '').split('\n')) {
        // Cut afterwards: the beginning of a secret that lies across the end would not be known as one.
        const clean = log.redact(part)
        write(deployment_id, log, {
          step,
          stream,
          text: clean.length > MAX_LINE ? `${clean.slice(0, MAX_LINE)}…` : clean,
        })
      }
    },
    /** Asks again for the values that must not show up: they may have changed since the log was opened. */
    async protect(deployment_id: string): Promise<void> {
      const redact = await redactorSoon(secretsOf(deployment_id))
      opened(deployment_id).redact = redact
    },
    /** A text as the log would show it, for what is kept or told elsewhere. */
    redact: (deployment_id: string, text: string): string =>
      // One that has ended is not opened for it: nobody would close it again.
      (open.get(deployment_id)?.redact ?? redactor(secretsOf(deployment_id)))(text),
    /** Writes what is pending and forgets the state of a log that has ended. */
    close(deployment_id: string) {
      flush()
      open.delete(deployment_id)
    },
    /** Lines after a number, oldest first, as many as one piece of work may be about; none after the newest. */
    after(deployment_id: string, seq: number, limit: number): LogLine[] {
      flush()
      return linesAfter<StoredLine>(path(deployment_id), seq, limit).map((line) =>
        lineOf(deployment_id, line),
      )
    },
    /** Lines after a number, else the newest ones. Of many, others are served between the parts. */
    async read(deployment_id: string, { after, tail = MOST_READ }: LogPage = {}): Promise<LogLine[]> {
      const found: LogLine[] = []
      let at = after ?? Math.max(0, this.latest(deployment_id) - tail)
      const pace = createPace(deployment_id)
      while (found.length < tail) {
        const part = this.after(deployment_id, at, tail - found.length)
        if (part.length === 0) break
        found.push(...part)
        at = part.at(-1)!.seq
        await pace.pause()
      }
      return found
    },
    /** Number of the newest line; 0 before the first. */
    latest(deployment_id: string): number {
      return this.tail(deployment_id, 1)[0]?.seq ?? 0
    },
    tail(deployment_id: string, count: number): LogLine[] {
      flush()
      return lastLines<StoredLine>(path(deployment_id), count).map((line) => lineOf(deployment_id, line))
    },
    subscribe(deployment_id: string, listener: LogListener): () => void {
      const set = listeners.get(deployment_id) ?? new Set()
      listeners.set(deployment_id, set.add(listener))
      return () => {
        set.delete(listener)
        if (set.size === 0) listeners.delete(deployment_id)
      }
    },
    remove(deployment_id: string) {
      open.delete(deployment_id)
      rmSync(path(deployment_id), { force: true })
    },
    /** Removes the oldest of some logs, which are given from the newest on, beyond so many bytes. */
    keepNewest(deployment_ids: readonly string[], most_bytes: number): void {
      let bytes = 0
      for (const [at, id] of deployment_ids.entries()) {
        const size = statSync(path(id), { throwIfNoEntry: false })?.size ?? 0
        bytes += size
        if (size > 0 && at > 0 && bytes > most_bytes && !open.has(id)) rmSync(path(id), { force: true })
      }
    },
    /** Removes logs that nothing was added to since `before` (ms); returns how many. */
    async prune(before: number): Promise<number> {
      let count = 0
      for await (const { name } of await opendir(directory)) {
        if (!name.endsWith('.ndjson') || open.has(name.slice(0, -7))) continue
        const file = join(directory, name)
        // Looked at and removed in one go: nobody adds a line in between.
        if ((statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) >= before) continue
        rmSync(file, { force: true })
        count += 1
        await setImmediate()
      }
      return count
    },
    flush,
  }
}
export type DeploymentLogs = ReturnType<typeof createDeploymentLogs>
