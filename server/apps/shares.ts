import { CORES } from '#server/kernel/cores'
import { differenceOf, largerOf, NO_SHARE, type Share, sumOf } from '#server/kernel/shares'
import { type Configuration, configurationOf } from './configuration.ts'
import type { AppRepository, AppRow } from './repository.ts'

export interface SharePorts {
  /** Throws 409 when instances of the project may now use more than its quotas; see projects. */
  requireShare(project_id: string, before?: Share, extra?: Share): void
  /** What instances of the project may use together. */
  share(project_id: string): Share
  /** What an app gets that names no limits of its own. */
  defaultLimits(): { default_cpus: number | null; default_memory_bytes: number }
  liveConfiguration(release_id: string): Configuration | undefined
  /**
   * What each release may use that serves of an app or is about to: with what only its source tells, such as the
   * services of a compose file.
   */
  releaseShares(app: Pick<AppRow, 'id' | 'live_release_id'>): Share[]
  /** Instances that a rule for scaling decided on; undefined without one. */
  decidedReplicas(app_id: string): number | undefined
}

/** What apps may use, against the quotas of their project. */
export function createAppShares(repository: Pick<AppRepository, 'find' | 'inProject'>, ports: SharePorts) {
  /** What all instances of an app may use. */
  const shareOf = ({
    replicas,
    limits,
    processes,
  }: Pick<Configuration, 'replicas' | 'limits' | 'processes'>): Share => {
    const { default_cpus, default_memory_bytes } = ports.defaultLimits()
    const share = (count: number, own: Configuration['limits']): Share => ({
      memory_bytes: count * (own.memory_bytes ?? default_memory_bytes),
      cpus: count * (own.cpus ?? default_cpus ?? CORES),
    })
    const { web, ...others } = processes ?? {}
    return sumOf([
      share(web?.replicas === 0 ? 0 : replicas, limits),
      ...Object.values(others).map((process) =>
        share(process.replicas ?? 1, { ...limits, ...process.limits }),
      ),
    ])
  }
  /** As it is configured, or as it runs where that is more: a change alone ends no instance. */
  const counted = (row: AppRow, configured = configurationOf(row)): Share => {
    const live = row.live_release_id ? ports.liveConfiguration(row.live_release_id) : undefined
    const decided = ports.decidedReplicas(row.id)
    const shares = [shareOf(configured), ...(live ? [shareOf(live)] : []), ...ports.releaseShares(row)]
    const now = shares.reduce(largerOf)
    if (decided === undefined) return now
    return largerOf(now, shareOf({ ...(live ?? configured), replicas: decided }))
  }
  return {
    /** What instances of all apps of a project may use together. */
    inProject: (project_id: string): Share =>
      sumOf(repository.inProject(project_id).map((row) => counted(row))),
    /** What a project would use more once an app of it, or without one a new app, is configured like this. */
    moreWith(configuration: Configuration, id?: string): Share {
      const row = id === undefined ? undefined : repository.find(id)
      return row ? differenceOf(counted(row, configuration), counted(row)) : shareOf(configuration)
    },
    /** Makes a change in the current transaction; throws 409 when the project has no room for it. */
    within(project_id: string, change: () => unknown): void {
      const before = ports.share(project_id)
      change()
      ports.requireShare(project_id, before)
    },
    /** Throws 409 when a project has no room for so much beside all that it may use already. */
    requireBeside: (project_id: string, extra: Share): void =>
      ports.requireShare(project_id, NO_SHARE, extra),
    /** What of a share an app is not counted for anyway; nothing where it is counted for as much. */
    beyond(id: string, share: Share): Share {
      const row = repository.find(id)
      return row ? largerOf(NO_SHARE, differenceOf(share, counted(row))) : share
    },
    /** Throws 409 when an app may not be deployed as it is configured, or as a release of it is. */
    require(id: string, release?: Share): void {
      const row = repository.find(id)
      if (!row) return
      // It takes the place of what runs, whatever that uses.
      const extra = differenceOf(release ?? shareOf(configurationOf(row)), counted(row))
      ports.requireShare(row.project_id, NO_SHARE, extra)
    },
    /** The same of a deployment that was let in above the quotas: it may use what its app is counted for. */
    requireAdmitted(id: string, release: Share): void {
      const row = repository.find(id)
      if (!row) return
      ports.requireShare(row.project_id, ports.share(row.project_id), this.beyond(id, release))
    },
  }
}
export type AppShares = ReturnType<typeof createAppShares>
