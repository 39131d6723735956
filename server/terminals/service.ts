import { setTimeout as wait } from 'node:timers/promises'
import * as v from 'valibot'
import { type Actor, PLATFORM } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { ChannelSession, SessionOutlet } from '#server/kernel/channels'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, badRequest, conflict, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { Log } from '#server/kernel/log'
import { type Mark, markNow, sinceMark } from '#server/kernel/stopwatch'
import { askingEngine } from '#server/platform/engine/asking'
import type { Engine, Instance } from '#server/platform/engine/engine'
import { IDLE_MS, LONGEST_MS } from './limits.ts'
import { createPlaces, type Holder } from './places.ts'
import { createTerminalRepository, type TerminalRow } from './repository.ts'
import { type TerminalEnd, TerminalOptions } from './schema.ts'
import { createTerminalSession, type TerminalSession } from './session.ts'

/** What a terminal is opened in. */
export interface TerminalPlace {
  noun: 'app' | 'database'
  id: string
  project_id: string
}
export interface TerminalsOptions {
  db: Db
  clock: Clock
  log: Log
  audit: AuditTrail
  engine: Pick<Engine, 'instances' | 'openTerminal' | 'hangUpTerminal'>
  /** Release of an app that takes requests; its instances come first. */
  liveRelease(app_id: string): string | undefined
}

interface Open extends Holder {
  session: TerminalSession
  opened_ms: number
}

/** A shell that cannot be started ends at once with one of these. */
const NOT_EXECUTABLE = [126, 127]
const NO_SHELL_MS = 3_000
const KILLED = 137
const GONE_ATTEMPTS = 20
const GONE_PAUSE_MS = 100

/** Terminals inside running instances: opened for one connection each, recorded with start, end and who. */
export function createTerminals({ db, clock, log, audit, engine, liveRelease }: TerminalsOptions) {
  const repository = createTerminalRepository(db)
  const open = new Map<string, Open>()
  const places = createPlaces(clock)
  const leaving = new Set<Promise<void>>()

  const instancesOf = ({ noun, id }: TerminalPlace): Promise<Instance[]> =>
    askingEngine(() => engine.instances({ owner: { kind: noun, id } }))
  const choose = async (place: TerminalPlace, desired: string | undefined): Promise<Instance> => {
    const found = await instancesOf(place)
    if (desired !== undefined && !found.some(({ id }) => id === desired)) throw notFound('instance')
    const running = found.filter(({ id, state }) => state === 'running' && (desired ?? id) === id)
    const live = place.noun === 'app' ? liveRelease(place.id) : undefined
    const chosen = running.find(({ release_id }) => release_id === live) ?? running[0]
    if (!chosen) throw conflict(`This ${place.noun} has no running instance. Start it first.`)
    return chosen
  }
  const record = (actor: Actor, row: TerminalRow, action: string, after: Record<string, unknown>) =>
    audit.record(actor, {
      action,
      resource_type: row.noun,
      resource_id: row.resource_id,
      project_id: row.project_id,
      after: { session_id: row.id, instance_id: row.instance_id, ...after },
    })
  /** When those of this process began; of others only the time of day is known. */
  const marks = new WeakMap<TerminalRow, Mark>()
  const begin = (actor: Actor, row: TerminalRow) =>
    db.tx(() => {
      marks.set(row, markNow(clock))
      repository.insert(row)
      record(actor, row, 'terminal.start', {})
    })
  const hangUp = (row: TerminalRow) => {
    const leave = engine.hangUpTerminal(row.instance_id, row.id).catch((error: unknown) => {
      log.debug('A terminal could not be hung up; its container may be gone', { session: row.id, error })
    })
    leaving.add(leave)
    void leave.finally(() => leaving.delete(leave))
  }
  const finish = (actor: Actor, row: TerminalRow, reason: TerminalEnd, exit_code: number | null) => {
    const begun = marks.get(row) ?? { running_ms: 0, wall_ms: Date.parse(row.started_at), process: '' }
    const duration_s = Math.round(sinceMark(clock, begun) / 1000)
    db.tx(() => {
      repository.remove(row.id)
      record(actor, row, 'terminal.end', { reason, exit_code, duration_s, user_id: row.user_id })
    })
    hangUp(row)
  }
  /** A shell that was killed may have gone with its container, which the engine says a moment later. */
  const reasonOf = async (place: TerminalPlace, row: TerminalRow, code: number | null, short: boolean) => {
    if (short && code !== null && NOT_EXECUTABLE.includes(code)) return 'no_shell' as const
    for (let attempt = 0; attempt < GONE_ATTEMPTS; attempt++) {
      const found = await instancesOf(place).catch((): Instance[] => [])
      if (!found.some(({ id, state }) => id === row.instance_id && state === 'running'))
        return 'instance_gone' as const
      if (code !== KILLED) break
      await wait(GONE_PAUSE_MS)
    }
    return 'exited' as const
  }

  /** Opens the shell and waits for its end; what goes wrong is told on the channel. */
  async function run(
    place: TerminalPlace,
    actor: Actor,
    id: string,
    expected: string | undefined,
    parts: { session: TerminalSession; outlet: SessionOutlet; began(row: TerminalRow): void },
  ): Promise<void> {
    const { session, outlet, began } = parts
    const instance = await choose(place, expected)
    if (session.has_ended) return
    const row: TerminalRow = {
      id,
      noun: place.noun,
      resource_id: place.id,
      project_id: place.project_id,
      instance_id: instance.id,
      user_id: actor.user_id,
      started_at: clock.iso(),
    }
    begin(actor, row)
    began(row)
    const opened_ms = clock.monotonic_ms()
    const spec = { session: id, ...session.size }
    const terminal = await askingEngine(() =>
      engine.openTerminal(instance.id, spec, new AbortController().signal),
    )
    const { process, index } = instance
    outlet.send({ type: 'started', data: { session_id: id, instance_id: instance.id, process, index } })
    session.begin(terminal)
    // It ended while the engine was opening it: nothing was there yet to be hung up.
    if (session.has_ended) hangUp(row)
    const code = (await terminal.done) ?? null
    const short = clock.monotonic_ms() - opened_ms < NO_SHELL_MS
    if (!session.has_ended) session.finish(await reasonOf(place, row, code, short), code)
  }

  return {
    open(place: TerminalPlace, actor: Actor, options: unknown, outlet: SessionOutlet): ChannelSession {
      const parsed = v.safeParse(TerminalOptions, options ?? {})
      if (!parsed.success) throw badRequest('data: may have instance_id, and cols and rows from 1 to 1000.')
      const { user_id } = actor
      const { project_id } = place
      places.take(actor, project_id, [...open.values()])
      const { cols = 80, rows = 24, instance_id } = parsed.output
      const id = newId('trm')
      let row: TerminalRow | undefined
      const session = createTerminalSession(clock, { cols, rows }, outlet, (reason, exit_code) => {
        open.delete(id)
        if (row) finish(actor, row, reason, exit_code)
      })
      open.set(id, { session, user_id, project_id, opened_ms: clock.monotonic_ms() })
      const began = (begun: TerminalRow) => {
        row = begun
      }
      run({ ...place }, actor, id, instance_id, { session, outlet, began }).catch((error: unknown) => {
        if (!(error instanceof ApiError)) log.warn('A terminal could not be opened', { error })
        session.fail(
          error instanceof ApiError
            ? error
            : new ApiError('INTERNAL_ERROR', 'The terminal could not be opened.'),
        )
      })
      return session
    },
    /** Ends terminals that nobody types into, and those that are open for too long. */
    tick(): void {
      const now = clock.monotonic_ms()
      for (const { session, opened_ms } of [...open.values()]) {
        if (now - session.typed_ms >= IDLE_MS) session.finish('idle', null)
        else if (now - opened_ms >= LONGEST_MS) session.finish('too_long', null)
      }
    },
    /** Terminals that were open when the last process ended: their shells may still run. */
    recover(): void {
      for (const row of repository.all()) finish(PLATFORM, row, 'server_restarted', null)
    },
    async stop(): Promise<void> {
      for (const { session } of [...open.values()]) session.end('server_stopping')
      await Promise.all(leaving)
    },
    get size() {
      return open.size
    },
  }
}
export type Terminals = ReturnType<typeof createTerminals>
