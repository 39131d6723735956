import type { BuildPlan } from '#server/builds/plan'
import type { ComposePlan } from '#server/compose/model'
import { runtimeValues } from '#server/env/resolved'
import { Fatal } from '#server/kernel/jobs/definition'
import { sourceFolder } from '#server/platform/archive/source-folder'
import { composeFileOf } from '#server/compose/compose-file'
import { sourceDirectory } from '../steps/source.ts'
import type { DeployContext, DeployedApp, Workshop } from '../work.ts'

/** Folder of a stack's source; undefined for a file without a repository. */
export const stackFolder = (shop: Workshop, deployment_id: string, app: DeployedApp): string | undefined =>
  app.configuration.compose === null
    ? sourceFolder(sourceDirectory(shop, deployment_id), app.configuration.base_directory)
    : undefined

/** Reads the compose file of an app with its variables as they are now. Throws Fatal with every fault of it. */
export async function readStack(
  shop: Workshop,
  context: DeployContext,
  app: DeployedApp,
): Promise<ComposePlan> {
  // Loaded when first used: the parser is large.
  const { ComposeError, parseCompose } = await import('#server/compose/parse')
  const { deployment_id } = context.payload
  const folder = stackFolder(shop, deployment_id, app)
  const tree = folder === undefined ? undefined : shop.ports.sourceTree(folder)
  const { text, directory, path } = composeFileOf(app.configuration, tree)
  if (text === undefined)
    throw new Fatal(
      'compose_missing',
      `The repository has no compose file${path ? ` at ${path}` : ''}.`,
      'Set compose_path to the file, seen from base_directory.',
    )
  const variables = () => runtimeValues(shop.ports.variables(app))
  const options = { ...(tree ? { files: tree } : {}), directory }
  try {
    const known = variables()
    const asked = parseCompose(text, { ...options, variables: known }).variables.map(({ name }) => name)
    const missing = asked.filter((name) => !Object.hasOwn(known, name))
    if (missing.length > 0) shop.ports.generateVariables(app.id, missing)
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
export async function detectStack(shop: Workshop, context: DeployContext, app: DeployedApp): Promise<void> {
  const { deployment_id } = context.payload
  const found = await readStack(shop, context, app)
  const plan: BuildPlan = await shop.ports.composePlan(found)
  context.state.plan = plan
  shop.deployments.change(deployment_id, { plan: JSON.stringify(plan) })
  const say = (text: string) => shop.logs.append(deployment_id, 'detect', 'system', text)
  say(`Detected a compose file with ${found.services.length} services.`)
  for (const { field, value, source } of plan.explanation) say(`  ${field}: ${value} (${source})`)
}
