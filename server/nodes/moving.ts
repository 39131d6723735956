import { totalmem } from 'node:os'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Instance } from '#server/platform/engine/engine'
import type { PlaceRequest } from '#server/deployments/servers'
import type { NodeContext } from './context.ts'
import { isLeftOut, readingOf } from './members.ts'
import { type AddedRow, isAdded, type NodeRow } from './repository.ts'
import { type Candidate, chooseServer } from './scheduler.ts'

/** How long a release that was placed counts as there though nothing of it runs yet: it is being started. */
const STARTING_MS = 120_000

interface Promised {
  app_id: string
  node_id: string | null
  memory_bytes: number
}
const promiseOf = ({ owner, node, limits }: Instance): Promised => ({
  app_id: owner.id,
  node_id: node ?? null,
  memory_bytes: limits?.memory_bytes ?? 0,
})
const sumOn = (promises: readonly Promised[], on: string | null): number =>
  promises.reduce((sum, { node_id, memory_bytes }) => sum + (node_id === on ? memory_bytes : 0), 0)
const takesWork = (row: NodeRow): boolean =>
  row.state === 'ready' && row.availability === 'active' && !isLeftOut(row)

/** Which server a release goes to, and which apps have to leave theirs. */
export function createMoving(context: NodeContext) {
  const { repository, ports, engine, clock } = context
  const starting = new Map<string, Promised & { at_ms: number }>()
  /** What was placed a moment ago, and does not run where it was placed yet. */
  function startingBeside(running: readonly Promised[]): Promised[] {
    for (const { app_id, node_id, at_ms } of starting.values()) {
      const is_there = running.some((one) => one.app_id === app_id && one.node_id === node_id)
      if (is_there || clock.monotonic_ms() - at_ms >= STARTING_MS) starting.delete(app_id)
    }
    return [...starting.values()]
  }

  /** Why the apps of a server have to go elsewhere; undefined while they may stay. */
  function leaveBecause(node_id: string): string | undefined {
    const row = repository.find(node_id)
    if (!row || !isAdded(row)) return 'The server that it ran on is no longer there.'
    if (row.state === 'removing') return `The server ${row.name} is being removed.`
    if (row.state !== 'ready') return `The server ${row.name} does not answer.`
    return row.availability === 'drain' ? `The work of the server ${row.name} moves elsewhere.` : undefined
  }
  /** The server that an app is pinned to; throws why it cannot go there. */
  function pinned(id: string, stays: string | undefined): string | null {
    const row = repository.find(id)
    const hint = 'Choose another server in the settings of the app, or none, then deploy again.'
    if (!row) throw new Fatal('node_unsuited', 'The server that the app is pinned to is not there.', hint)
    if (!isAdded(row)) return null
    if (stays !== undefined)
      throw new Fatal('node_unsuited', `The app cannot run on ${row.name}: ${stays}`, hint)
    if (row.state === 'unreachable' || row.state === 'joining')
      throw new Fatal(
        'node_unreachable',
        `The server ${row.name}, which the app is pinned to, ${row.state === 'joining' ? 'is not ready' : 'does not answer'}.`,
        hint,
      )
    if (isLeftOut(row)) throw new Fatal('node_unsuited', `${row.name}: ${row.last_error}`, hint)
    if (!takesWork(row))
      throw new Fatal(
        'node_unsuited',
        `The server ${row.name}, which the app is pinned to, takes no work.`,
        hint,
      )
    return id
  }

  function relocate(app_id: string, node_id: string, reason: string): void {
    const state = repository.find(node_id)?.state
    const is_down = state === undefined || state === 'unreachable'
    const is_pinned = ports.pinned(node_id).some(({ id }) => id === app_id)
    if (!is_pinned && ports.move(app_id, reason)) return
    if (!is_down) return
    const what = is_pinned
      ? 'The app is pinned to it, and runs again once it is back.'
      : 'The app could not be started on another one: its last deployment says why.'
    ports.lost(app_id, `${reason} ${what}`)
  }

  return {
    leaveBecause,
    /**
     * Where a release goes, as a whole: null for the server of Portreeve. Without added servers nothing is asked.
     * Throws Fatal when the app is pinned to a server that it cannot go to.
     */
    async place({ app_id, pin, stays, needs, current }: PlaceRequest): Promise<string | null> {
      if (pin !== null) return pinned(pin, stays)
      if (stays !== undefined) return null
      const open = repository.added().filter(takesWork)
      if (open.length === 0) return null
      const running = (await engine.instances({})).map(promiseOf)
      // Nothing is waited for from here on, so that of apps that are placed at once each counts with the others.
      const others = [...running, ...startingBeside(running)].filter((one) => one.app_id !== app_id)
      const memoryOf = (row: AddedRow): number => readingOf(row)?.memory_total_bytes ?? 0
      const candidates: Candidate[] = [
        ...open.map((row) => ({
          node_id: row.id,
          memory_bytes: memoryOf(row),
          promised_bytes: sumOn(others, row.id),
        })),
        // The last one where they are alike: it builds, takes the requests and keeps the databases as well.
        { node_id: null, memory_bytes: totalmem(), promised_bytes: sumOn(others, null) },
      ]
      const node_id = chooseServer(candidates, { needs_bytes: needs.memory_bytes, current })
      starting.set(app_id, { app_id, node_id, memory_bytes: needs.memory_bytes, at_ms: clock.monotonic_ms() })
      return node_id
    },
    /**
     * Moves what is on servers that do not answer, take no work any more or are gone; whatever does not work now does
     * the next time. Apps that are pinned to one that does not answer wait for it, and say so.
     */
    sweep(): void {
      for (const { app_id, node_id, is_busy } of ports.placed()) {
        const reason = leaveBecause(node_id)
        if (reason === undefined || is_busy) continue
        try {
          relocate(app_id, node_id, reason)
        } catch (error) {
          context.log.warn('An app could not be moved', { app: app_id, node: node_id, error })
        }
      }
    },
    /** Whether nothing is or will be on a server. */
    async isEmpty(node_id: string): Promise<boolean> {
      if (ports.isBeingPlaced(node_id) || ports.placed().some((app) => app.node_id === node_id)) return false
      return !(await engine.instances({})).some(({ node, state }) => node === node_id && state === 'running')
    },
    /** Names of the apps that are still on a server. */
    placedOn: (node_id: string): string[] =>
      ports.placed().flatMap((app) => (app.node_id === node_id ? [app.app_id] : [])),
  }
}
export type Moving = ReturnType<typeof createMoving>
