import type { BuildPlan } from '#server/builds/plan'
import { variableDifferences } from '#server/env/resolved'
import { type Difference, differencesIn, differencesOf } from '#server/kernel/differences'
import { notFound } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
import { MASK } from '#server/kernel/schemas'
import { SecretUnreadableError } from '#server/kernel/secrets'
import type { Release } from './releases.ts'
import type { DeploymentRow } from './repository.ts'
import type { DeploymentComparison } from './schema.ts'
import { type DeployParts, secretsOfApp } from './work.ts'

type Part = DeploymentComparison['differences'][number]['part']
const plain = (part: Part, found: readonly Difference[]) =>
  found.map((one) => ({ part, ...one, secret: false }))

/** What a plan decides; the texts that follow from it are left out, since the reader could only search them. */
function decisions(row: DeploymentRow): Record<string, unknown> {
  if (!row.plan) return {}
  const {
    dockerfile: _text,
    explanation: _why,
    suggested_variables: _hint,
    compose,
    ...rest
  } = JSON.parse(row.plan) as BuildPlan
  const services = (compose?.services ?? []).map((one) => [`services.${one.name}`, one.image ?? one.build])
  return { ...rest, ...Object.fromEntries(services) }
}
const sourceOf = ({ branch, commit_sha, commit_message, commit_author }: DeploymentRow) => ({
  branch,
  commit: commit_sha,
  commit_message,
  commit_author,
})
const countOf = (release: Release) => release.settings.mounts?.ids.length ?? 0

/** What differs between two deployments of an app, old and new; no value of a secret is among it. */
export function createComparison(parts: DeployParts, get: (id: string) => DeploymentRow) {
  const { deployments, releases } = parts
  const releaseOf = (row: DeploymentRow) => (row.release_id ? releases.find(row.release_id) : undefined)

  /** Variables of both; nothing where those of one cannot be read with the key of this installation. */
  function variables(before: Release, after: Release) {
    try {
      const hidden = new Set(secretsOfApp(parts, after.app_id))
      return variableDifferences(releases.variables(before.id), releases.variables(after.id)).map((one) => {
        // What is a secret by now was shown by neither of the two.
        const secret = one.secret || [one.before, one.after].some((value) => value && hidden.has(value))
        const shown = (value: string | null) => (secret && value !== null ? MASK : value)
        return {
          part: 'variables' as const,
          ...one,
          before: shown(one.before),
          after: shown(one.after),
          secret,
        }
      })
    } catch (error) {
      if (error instanceof SecretUnreadableError) return undefined
      throw error
    }
  }
  function mounts(before: Release, after: Release) {
    const ids = (release: Release) => release.settings.mounts?.ids.join() ?? ''
    if (ids(before) === ids(after)) return []
    return plain('mounts', [{ key: 'mounts', before: `${countOf(before)}`, after: `${countOf(after)}` }])
  }

  return (id: string, with_id?: string): DeploymentComparison => {
    const after = get(id)
    const other = deployments.find(with_id ?? deployments.lastGood(after) ?? '')
    const before = orThrow(other?.app_id === after.app_id ? other : undefined, () =>
      notFound(
        with_id === undefined ? 'deployment before it that went live with a build of its own' : 'deployment',
      ),
    )
    const [old, now] = [releaseOf(before), releaseOf(after)]
    const changed = old && now ? variables(old, now) : undefined
    return {
      deployment_id: id,
      with_id: before.id,
      complete: changed !== undefined,
      differences: [
        ...plain('source', differencesIn(sourceOf(before), sourceOf(after))),
        ...plain('image', differencesIn({ image: before.image }, { image: after.image })),
        ...plain('plan', differencesIn(decisions(before), decisions(after))),
        ...(old && now
          ? [...plain('configuration', configured(old, now)), ...mounts(old, now), ...(changed ?? [])]
          : []),
      ],
    }
  }
}

/** Fields of the configuration; those of a group, such as `build`, one by one. */
const configured = ({ configuration: before }: Release, { configuration: after }: Release): Difference[] => {
  const keys = Object.keys({ ...before, ...after }) as (keyof Release['configuration'])[]
  return keys.flatMap((key) =>
    JSON.stringify(before[key]) === JSON.stringify(after[key])
      ? []
      : differencesOf(key, before[key], after[key]),
  )
}
