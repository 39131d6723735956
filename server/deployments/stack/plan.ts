import type { BuildPlan } from '#server/builds/plan'
import type { ComposePlan } from '#server/compose/model'
import { runtimeValues } from '#server/env/resolved'
import { Fatal } from '#server/kernel/jobs/definition'
import { sourceFolder } from '#server/platform/archive/source-folder'
import { composeFileOf } from '#server/compose/compose-file'
import type { Release } from '../releases.ts'
import { sourceDirectory } from '../steps/source.ts'
import type { DeployStep, DeployedApp, DeployContext } from '../work.ts'

/** Folder of a stack's source; undefined for a file without a repository. */
export const stackFolder = (
  context: DeployContext,
  deployment_id: string,
  app: DeployedApp,
): string | undefined =>
  app.configuration.compose === null
    ? sourceFolder(sourceDirectory(context, deployment_id), app.configuration.base_directory)
    : undefined

/**
 * Whether services may have written to a volume. One that only releases mounted of which none ever served holds
 * nothing: a file that was missing was taken for a folder then, and may come now.
 */
function dataOf({ releases, ports }: DeployContext, app: DeployedApp): (volume: string) => boolean {
  let served: { has_releases: boolean; volume_ids: Set<string> } | undefined
  // There may be thousands of releases, and a file names many volumes: they are gone through once.
  const known = () => (served ??= servedVolumes(releases.ofApp(app.id), app.live_release_id))
  return (volume) => {
    const found = ports.stackVolume(app, volume)
    if (!found) return false
    const { has_releases, volume_ids } = known()
    // Without any release it came with a backup that the app was restored from.
    return has_releases ? volume_ids.has(found.id) : found.is_mounted
  }
}

/** The volumes that releases mounted which served, or are about to. */
function servedVolumes(made: readonly Release[], live_id: string | null) {
  const volume_ids = made
    .filter(({ id, proven }) => proven || id === live_id)
    .flatMap(({ settings }) => settings.stack ?? [])
    .flatMap(({ volumes }) => volumes.map(({ volume_id }) => volume_id))
  return { has_releases: made.length > 0, volume_ids: new Set(volume_ids) }
}

/** Reads the compose file of an app with its variables as they are now. Throws Fatal with every fault of it. */
export async function readStack(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
): Promise<ComposePlan> {
  // Loaded when first used: the parser is large.
  const { ComposeError, parseCompose } = await import('#server/compose/parse')
  const { deployment_id } = step.payload
  const folder = stackFolder(context, deployment_id, app)
  const tree = folder === undefined ? undefined : await context.ports.sourceTree(folder)
  const { text, directory, path } = composeFileOf(app.configuration, tree)
  if (text === undefined)
    throw new Fatal(
      'compose_missing',
      `The repository has no compose file${path ? ` at ${path}` : ''}.`,
      'Set compose_path to the file, seen from base_directory.',
    )
  const variables = () => runtimeValues(context.ports.variables(app))
  const holdsData = dataOf(context, app)
  const options = { ...(tree ? { files: tree } : {}), directory, holdsData }
  try {
    const known = variables()
    const asked = parseCompose(text, { ...options, variables: known }).variables.map(({ name }) => name)
    const missing = asked.filter((name) => !Object.hasOwn(known, name))
    if (missing.length > 0) context.ports.generateVariables(app.id, missing)
    return parseCompose(text, { ...options, variables: variables(), strict: true })
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error
    throw new Fatal(
      'compose_refused',
      error.message,
      'Change the compose file and deploy again.',
      error.issues.map((issue) => `${issue.path}: ${issue.message}`),
    )
  }
}

/** Reads the file and tells in the log what becomes of it. */
export async function detectStack(context: DeployContext, step: DeployStep, app: DeployedApp): Promise<void> {
  const { deployment_id } = step.payload
  const found = await readStack(context, step, app)
  const plan: BuildPlan = await context.ports.composePlan(found)
  step.state.plan = plan
  context.deployments.change(deployment_id, { plan: JSON.stringify(plan) })
  const say = (text: string) => context.logs.append(deployment_id, 'detect', 'system', text)
  say(`Detected a compose file with ${found.services.length} services.`)
  for (const { field, value, source } of plan.explanation) say(`  ${field}: ${value} (${source})`)
}
