import { conflict, invalid } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
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
  /** Whether two releases run the same image in the same way. */
  const isSame = (one: Release, other: Release): boolean =>
    one.settings.stack && other.settings.stack
      ? fingerprintsOf(one) === fingerprintsOf(other)
      : isSamePlain(one, other)
  const fingerprintsOf = ({ settings }: Release): string =>
    JSON.stringify(settings.stack?.map(({ name, fingerprint }) => [name, fingerprint]))
  const isSamePlain = (one: Release, other: Release): boolean =>
    one.image_id === other.image_id &&
    JSON.stringify(one.settings) === JSON.stringify(other.settings) &&
    JSON.stringify(variables(one)) === JSON.stringify(variables(other))

  /**
   * What served before the live release was made. Restarts and rollbacks to it are passed over, and so is
   * what it was rolled back from.
   */
  const before = (app_id: string, live_release_id: string | null): Release | undefined => {
    const proven = releases.proven(app_id)
    const read = (one: (typeof proven)[number] | undefined) => one && releases.find(one.id)
    const live = live_release_id ? releases.find(live_release_id) : undefined
    if (!live) return read(proven[0])
    const origin = originOf(live.deployment_id)
    const from = proven.findIndex((release) => release.deployment_id === origin) + 1
    const found = firstOther(proven.slice(from), live)
    const made_by = found && originOf(found.deployment_id)
    return read(proven.find((release) => release.deployment_id === made_by)) ?? found
  }
  /** One is read at a time, and not many of them, since each may be large. */
  const firstOther = (ids: readonly { id: string }[], live: Release): Release | undefined => {
    for (const [at, { id }] of ids.slice(0, MOST_COMPARED).entries()) {
      const release = releases.find(id)
      if (release && (at + 1 === MOST_COMPARED || !isSame(release, live))) return release
    }
    return undefined
  }

  /**
   * The proven release of the deployment that was asked for, or the one before the live one. Throws a 409
   * when there is none.
   */
  return (
    app: { id: string; live_release_id: string | null },
    deployment_id: string | undefined,
  ): Release => {
    if (deployment_id === undefined)
      return orThrow(before(app.id, app.live_release_id), () =>
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
