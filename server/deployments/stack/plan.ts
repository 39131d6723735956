import type { BuildPlan } from '#server/builds/plan'
import type { ComposePlan } from '#server/compose/model'
import { runtimeValues } from '#server/env/resolved'
import { Fatal } from '#server/kernel/jobs/definition'
import { sourceFolder } from '#server/platform/archive/source-folder'
import { composeFileOf } from '#server/compose/compose-file'
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
  let served: ReadonlySet<string> | undefined
  return (volume) => {
    const found = ports.stackVolume(app, volume)
    if (!found) return false
    // Without any release it came with a backup that the app was restored from.
    if (!releases.hasAny(app.id)) return found.is_mounted
    // There may be thousands of releases, and a file names many volumes: they are gone through once.
    served ??= releases.servedVolumes(app.id, app.live_release_id)
    return served.has(found.id)
  }
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
  const options = { ...(tree ? { files: tree } : {}), directory, holdsData, name: app.name }
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
