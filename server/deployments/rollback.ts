import { conflict, invalid } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
import type { Pace } from '#server/kernel/pace'
import { requestOf, type DeploymentRepository } from './repository.ts'
import type { Release, Releases } from './releases.ts'

/**
 * What the platform adds to every environment; it differs between two releases that are otherwise the same.
 */
const OWN_VARIABLE = /^(PORT|PORTREEVE_.*)$/

/** Releases that are compared with what is live: with so many that are the same, the next one counts as another. */
export const MOST_COMPARED = 20

/** Finds the release that a rollback of an app leads to. */
export function createRollbackTarget(deployments: DeploymentRepository, releases: Releases) {
  /**
   * The deployment that made what a deployment runs: a rollback or a restart takes over what another one
   * made.
   */
  const originOf = (deployment_id: string): string => {
    for (let origin = deployment_id; ; ) {
      const row = deployments.find(origin)
      const { from_deployment } = row ? requestOf(row) : {}
      if (!from_deployment) return origin
      origin = from_deployment
    }
  }
  const variables = (release: Release) =>
    Object.entries(releases.environment(release.id))
      .filter(([name]) => !OWN_VARIABLE.test(name))
      .sort(([a], [b]) => (a < b ? -1 : 1))
  /** Text that two releases have in common when they run the same image in the same way. */
  const textOf = (release: Release): string => {
    const { image_id, settings } = release
    return settings.stack
      ? JSON.stringify(settings.stack.map(({ name, fingerprint }) => [name, fingerprint]))
      : JSON.stringify([image_id, settings, variables(release)])
  }

  /**
   * What served before the live release was made. Restarts and rollbacks to it are passed over, and so is
   * what it was rolled back from.
   */
  const before = async (
    app_id: string,
    live_release_id: string | null,
    pace: Pace,
  ): Promise<Release | undefined> => {
    const proven = releases.proven(app_id)
    const read = (one: (typeof proven)[number] | undefined) => one && releases.find(one.id)
    const live = live_release_id ? releases.find(live_release_id) : undefined
    if (!live) return read(proven[0])
    const origin = originOf(live.deployment_id)
    const from = proven.findIndex((release) => release.deployment_id === origin) + 1
    const found = await firstOther(proven.slice(from), live, pace)
    const made_by = found && originOf(found.deployment_id)
    return read(proven.find((release) => release.deployment_id === made_by)) ?? found
  }
  /** One is read at a time with others served in between, and not many of them, since each may be large. */
  const firstOther = async (
    ids: readonly { id: string }[],
    live: Release,
    pace: Pace,
  ): Promise<Release | undefined> => {
    const live_text = textOf(live)
    for (const [at, { id }] of ids.slice(0, MOST_COMPARED).entries()) {
      await pace.rest()
      const release = releases.find(id)
      if (release && (at + 1 === MOST_COMPARED || textOf(release) !== live_text)) return release
    }
    return undefined
  }

  /**
   * The proven release of the deployment that was asked for, or the one before the live one. Throws a 409
   * when there is none.
   */
  return async (
    app: { id: string; live_release_id: string | null },
    deployment_id: string | undefined,
    pace: Pace,
  ): Promise<Release> => {
    if (deployment_id === undefined)
      return orThrow(await before(app.id, app.live_release_id, pace), () =>
        conflict('There is no earlier release to roll back to.'),
      )
    if (deployments.find(deployment_id)?.app_id !== app.id)
      throw invalid('deployment_id', 'is not a deployment of this app.')
    const release = releases.ofDeployment(deployment_id)
    if (!release?.proven)
      throw conflict('That deployment was never live, so there is nothing to roll back to.')
    return release
  }
}
