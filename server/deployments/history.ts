import type { Db } from '#server/kernel/db'
import { scopesAbove } from '#server/kernel/page'
import { createPace, type Pace } from '#server/kernel/pace'
import { type DeploymentRepository, requestOf } from './repository.ts'
import type { Releases } from './releases.ts'
import { MOST_COMPARED } from './rollback.ts'
import { archivesKeptBy } from './upload.ts'

/** Deployments of an app that are kept, the newest; those that something needs are kept besides. */
export const DEPLOYMENTS_KEPT = 1_000
/** Rows that are read in one piece, and that are deleted: releases may have a megabyte each. */
const READ_AT_ONCE = 1_000
const FORGOTTEN_AT_ONCE = 20

interface Entry {
  id: string
  number: number
  /** The deployment whose release this one took over. */
  from: string | null
}
export interface HistoryParts {
  db: Db
  deployments: Pick<
    DeploymentRepository,
    'archived' | 'lastGood' | 'lastUncached' | 'lastBranched' | 'unfinished'
  >
  releases: Pick<Releases, 'deploymentsOf' | 'deploymentOf' | 'kept' | 'proven'>
  /** What of an app serves; undefined when there is no such app. */
  app(id: string): { live_deployment_id: string | null; live_release_id: string | null } | undefined
  /** A deployment is gone. */
  forgotten(id: string): void
  kept?: number
}

/** Tells the deployment that made what a deployment runs, which may have come through thousands of others. */
function originsIn(entries: ReadonlyMap<string, Entry>): (id: string) => string {
  const known = new Map<string, string>()
  return (id) => {
    const path: string[] = []
    let at = id
    for (;;) {
      const from = entries.get(at)?.from
      if (!from || !entries.has(from) || known.has(at)) break
      path.push(at)
      at = from
    }
    const origin = known.get(at) ?? at
    for (const one of path) known.set(one, origin)
    return origin
  }
}

/** Forgets deployments of apps that have had very many, with their releases and jobs. */
export function createHistory(parts: HistoryParts) {
  const { db, deployments, releases, kept = DEPLOYMENTS_KEPT } = parts
  async function entriesOf(app_id: string, pace: Pace): Promise<Map<string, Entry>> {
    const entries = new Map<string, Entry>()
    for (let after = -1; ; await pace.pause()) {
      const page = db
        .sql(
          `SELECT id, number, request ->> '$.from_deployment' AS "from" FROM deployments
           WHERE app_id = ? AND number > ? ORDER BY number LIMIT ${READ_AT_ONCE}`,
        )
        .all(app_id, after) as Entry[]
      for (const entry of page) entries.set(entry.id, entry)
      if (page.length < READ_AT_ONCE) return entries
      after = page.at(-1)!.number
    }
  }

  type Ids = (string | null | undefined)[]
  /** What serves and what is asked for, which may be something old from one moment to the next. */
  function inUseOf(app_id: string): Ids {
    const app = parts.app(app_id)
    const open = deployments.unfinished(app_id)
    return [
      app?.live_deployment_id,
      ...(app?.live_release_id ? releases.deploymentsOf([app.live_release_id]) : []),
      ...open.flatMap((row) => [row.id, requestOf(row).from_deployment]),
    ]
  }
  /** What can be rolled back to, and what is looked up: the newest of its kind, which nothing older becomes. */
  const lookedUpOf = (app_id: string): Ids => [
    ...releases.deploymentsOf(releases.kept(app_id).map(({ id }) => id)),
    deployments.lastGood({ app_id, number: Number.MAX_SAFE_INTEGER }),
    deployments.lastUncached(app_id),
    deployments.lastBranched(app_id)?.id,
    ...archivesKeptBy(deployments, app_id),
  ]
  const isId = (id: Ids[number]): id is string => typeof id === 'string'

  /**
   * Which deployments stay, and which of them lose the one that they took their release from: they
   * name the one that made it then, as that does. A thousand restarts of a release are a chain that
   * nothing could be taken out of.
   */
  function survivorsOf(app_id: string, entries: ReadonlyMap<string, Entry>) {
    const origins = originsIn(entries)
    const stay = new Set(
      [...inUseOf(app_id), ...lookedUpOf(app_id), ...rollbacksOf(app_id, origins)].filter(isId),
    )
    // Read in the order of their numbers. As arguments of a function there may be too many of them.
    let last = 0
    for (const { number } of entries.values()) last = number
    for (const { id, number } of entries.values()) if (number > last - kept) stay.add(id)
    const renamed = new Map<string, string>()
    for (const id of [...stay]) {
      const from = entries.get(id)?.from
      if (!from || stay.has(from) || !entries.has(from)) continue
      const origin = origins(from)
      stay.add(origin)
      if (origin !== from) renamed.set(id, origin)
    }
    return { stay, renamed }
  }

  /** What a rollback compares with what is live, until it finds one that differs. */
  function rollbacksOf(app_id: string, originOf: (id: string) => string): string[] {
    const live = parts.app(app_id)?.live_release_id
    const made_by = live && releases.deploymentOf(live)
    const proven = releases.proven(app_id)
    const origin = made_by && originOf(made_by)
    const at = proven.findIndex(({ deployment_id }) => deployment_id === origin) + 1
    return proven.slice(at, at + MOST_COMPARED).map(({ deployment_id }) => deployment_id)
  }

  /** Forgets some, unless they are used by now. To look for all that is needed would read every deployment each time. */
  const forget = (app_id: string, ids: readonly string[]): void =>
    db.tx(() => {
      const needed = new Set(inUseOf(app_id))
      for (const id of ids) {
        if (needed.has(id)) continue
        const { changes } = db.sql('DELETE FROM deployments WHERE id = ? AND finished_at IS NOT NULL').run(id)
        if (changes > 0) db.afterCommit(() => parts.forgotten(id))
      }
    })

  async function forgetOf(app_id: string): Promise<number> {
    const pace = createPace(app_id)
    const entries = await entriesOf(app_id, pace)
    const { stay, renamed } = survivorsOf(app_id, entries)
    db.tx(() => {
      for (const [id, origin] of renamed)
        db.sql(`UPDATE deployments SET request = json_set(request, '$.from_deployment', ?) WHERE id = ?`).run(
          origin,
          id,
        )
    })
    const ids = [...entries.keys()].filter((id) => !stay.has(id))
    for (let from = 0; from < ids.length; from += FORGOTTEN_AT_ONCE) {
      await pace.pause()
      forget(app_id, ids.slice(from, from + FORGOTTEN_AT_ONCE))
    }
    return ids.length
  }

  return {
    /** Forgets what is too old of all apps, with others served in between; returns how many. */
    async forgetOld(): Promise<number> {
      let count = 0
      for (const app_id of scopesAbove(db, 'deployments', 'app_', kept)) count += await forgetOf(app_id)
      return count
    },
  }
}
