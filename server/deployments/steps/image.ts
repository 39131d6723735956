import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BuildPlan, overridesOf } from '#server/builds/plan'
import { buildArguments, buildSecrets, portOf, runtimeValues } from '#server/env/resolved'
import { sourceFolder } from '#server/platform/archive/source-folder'
import { Fatal } from '#server/kernel/jobs/definition'
import { type BuildLogLine, EngineError, type Image } from '#server/platform/engine/engine'
import { requestOf } from '../repository.ts'
import { hasWeb, requireSound } from '../processes.ts'
import { settingsOf, strangeProcesses } from '../release-settings.ts'
import type { Release } from '../releases.ts'
import { placeRelease } from '../placing.ts'
import { appToBuild, type DeployStep, type DeployedApp, type DeployContext } from '../work.ts'
import { buildInputs, cacheScopes, checkedDockerfile } from '../build-inputs.ts'
import { adoptStack, buildStack, missingImages, stackImage } from '../stack/build.ts'
import { detectStack } from '../stack/plan.ts'
import { pull } from './pull.ts'
import { buildKey, sourceDirectory } from './source.ts'

const inlinePlan = (app: DeployedApp): BuildPlan => ({
  stack: 'dockerfile',
  framework: null,
  version: null,
  package_manager: null,
  install_command: null,
  build_command: null,
  start_command: app.configuration.build.start_command ?? null,
  release_command: app.configuration.build.release_command ?? null,
  port: app.configuration.port ?? 0,
  health_check: { type: 'tcp' },
  dockerfile: app.configuration.dockerfile!,
  processes: {},
  web: true,
  cron_jobs: [],
  explanation: [{ field: 'dockerfile', value: 'inline', source: 'app.dockerfile' }],
})

/** Adds the file unless the source has one, be it only a link to something that is not there. */
function addDockerignore(folder: string, text: string): void {
  try {
    writeFileSync(join(folder, '.dockerignore'), text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Looks at the source and decides how to build and run it. */
export async function detectStep(context: DeployContext, step: DeployStep): Promise<void> {
  const { deployment_id } = step.payload
  const app = appToBuild(context, step)
  const { configuration } = app
  const { from_release, rebuild } = requestOf(context.deployments.find(deployment_id)!)
  if (step.state.image_id || (from_release && !rebuild) || configuration.source === 'image') {
    if (step.state.plan) context.deployments.change(deployment_id, { plan: JSON.stringify(step.state.plan) })
    return step.skip()
  }
  if (configuration.source === 'compose') return detectStack(context, step, app)
  let plan: BuildPlan
  if (configuration.source === 'dockerfile') {
    plan = inlinePlan(app)
  } else {
    const variables = context.ports.variables(app)
    const repository = sourceDirectory(context, deployment_id)
    const folder = sourceFolder(repository, configuration.base_directory)
    const overrides = {
      ...overridesOf(configuration.build, configuration.port ?? portOf(variables)),
      app: app.name,
      repository,
      build_args: Object.keys({ ...buildArguments(variables), ...configuration.build.args }),
      build_secrets: Object.keys(buildSecrets(variables)).length > 0,
    }
    plan = await context.ports.detect(folder, overrides, app.id)
    if (plan.stack !== 'dockerfile') addDockerignore(folder, context.ports.dockerignore())
  }
  step.state.plan = plan
  context.deployments.change(deployment_id, { plan: JSON.stringify(plan) })
  const named = [plan.stack, plan.framework, plan.version].filter(Boolean).join(' ')
  context.logs.append(deployment_id, 'detect', 'system', `Detected ${named}.`)
  for (const { field, value, source } of plan.explanation)
    context.logs.append(deployment_id, 'detect', 'system', `  ${field}: ${value} (${source})`)
}

/** What a build needs beside an image as large as the last one: layers that are packed and unpacked. */
const BUILD_ROOM_BYTES = 2 * 1024 ** 3

/** Frees unused images and build cache where the build would not fit; that it cannot is no reason not to try. */
async function makeRoom(
  context: DeployContext,
  app: DeployedApp,
  onLog: (line: BuildLogLine) => void,
): Promise<void> {
  try {
    const live = app.live_release_id ? context.releases.find(app.live_release_id) : undefined
    const last = live && (await context.engine.findImage(live.image_id))
    const freed = await context.ports.makeRoom(BUILD_ROOM_BYTES + (last?.size_bytes ?? 0))
    if (freed === undefined) return
    const text = `The disk has little room for a build: ${Math.round(freed / 1024 ** 2)} MiB of unused images and build cache were removed.`
    onLog({ stream: 'system', text })
  } catch (error) {
    context.log.warn('No room could be made for a build', { app_id: app.id, error })
  }
}

async function make(context: DeployContext, step: DeployStep, app: DeployedApp): Promise<Image> {
  const { deployment_id } = step.payload
  const onLog = (line: { stream: 'stdout' | 'stderr' | 'system'; text: string }) =>
    context.logs.append(deployment_id, 'build', line.stream, line.text)
  if (app.configuration.source === 'image') {
    return pull(context, app, app.configuration.image!, onLog, step.signal)
  }
  const plan = step.state.plan!
  const tag = `portreeve/${app.id}:${deployment_id}`
  step.state.built = true
  step.state.image_tag = tag
  // Variables may have changed since the source was fetched: the image is of those that it is built
  // with.
  if (step.state.build_key) step.state.build_key = buildKey(context, app, step.state.commit_sha!)
  step.save()
  const { build_args, secrets, notes } = buildInputs(context, app, plan)
  for (const text of notes) onLog({ stream: 'system', text })
  const text = plan.dockerfile
  const checked =
    plan.stack === 'dockerfile'
      ? await checkedDockerfile(context, app, text, { build_args, onLog, signal: step.signal })
      : { dockerfile: text }
  await makeRoom(context, app, onLog)
  const building = context.engine.buildImage(
    {
      context: sourceFolder(
        sourceDirectory(context, deployment_id),
        app.configuration.source === 'dockerfile' ? '.' : app.configuration.base_directory,
      ),
      ...checked,
      tag,
      labels: { app: app.id, deployment: deployment_id, project: app.project_id },
      build_args,
      secrets,
      registries: context.ports.registryAuths(
        app,
        `${plan.dockerfile} ${Object.values(build_args).join(' ')}`,
      ),
      no_cache: requestOf(context.deployments.find(deployment_id)!).no_cache ?? false,
      ...cacheScopes(context, app),
      limits: context.defaults.build,
      onLog,
    },
    step.signal,
  )
  return building.catch((error: unknown) => {
    throw asWarned(error, plan)
  })
}

/** Whether a text has a name as a word of its own: `ui` is none in "build". */
function isNamedIn(text: string, name: string): boolean {
  const parts = text.split(name)
  return parts.slice(1).some((after, at) => !/[\w.-]$/.test(parts[at]!) && !/^[\w-]/.test(after))
}

/** A failure that the plan warned of: the warning knows the repository, a tool what it was handed alone. */
function asWarned(error: unknown, { explanation }: BuildPlan): unknown {
  if (!(error instanceof EngineError) || error.code !== 'build_failed') return error
  const told = error.log.join('\n')
  const warning = explanation.find(
    ({ field, value }) =>
      field === 'warning' && [...value.matchAll(/`([^`]+)`/g)].some(([, name]) => isNamedIn(told, name!)),
  )
  return warning ? new EngineError(error.code, error.message, warning.value, { log: error.log }) : error
}

/** Builds or pulls the image, or takes that of an earlier release, and fixes the release. */
export async function buildStep(context: DeployContext, step: DeployStep): Promise<void> {
  const { deployment_id, app_id } = step.payload
  const { state } = step
  const app = appToBuild(context, step)
  const requested = requestOf(context.deployments.find(deployment_id)!)
  const known = requested.from_release ? context.releases.find(requested.from_release) : undefined
  if (app.configuration.source === 'compose') return makeStack(context, step, app, known)
  const desired = requested.rebuild ? state.image_id : (known?.image_id ?? state.image_id)
  const present = desired ? await context.engine.findImage(desired) : undefined
  if (known && desired && !present)
    throw new Fatal(
      'image_gone',
      'The image of that release is no longer on this server.',
      'Deploy its commit again instead.',
    )
  if (desired && !present)
    throw new Fatal(
      'image_gone',
      'The image that was to be used again has been removed.',
      'Deploy again with no_cache.',
    )
  const image = present ?? (await make(context, step, app))
  state.image_id = image.id
  const taken = known && !requested.fresh_variables ? known : undefined
  const variables = taken ? context.releases.variables(taken.id) : context.ports.variables(app)
  const environment = taken ? context.releases.environment(taken.id) : runtimeValues(variables)
  const mounts = context.ports.mounts(app)
  const files = known ? context.releases.files(known.id) : mounts.files
  const settings = known
    ? known.settings
    : settingsOf(context.defaults, app, { plan: state.plan, image, port: portOf(variables), mounts })
  for (const text of known ? [] : strangeProcesses(state.plan, app.configuration))
    context.logs.append(deployment_id, 'build', 'system', text)
  requireSound(settings)
  const node_id = await placeRelease(context, step, settings)
  context.releases.ensure(
    {
      id: state.release_id,
      app_id,
      deployment_id,
      image_id: image.id,
      image_tag: (requested.rebuild ? undefined : known?.image_tag) ?? state.image_tag ?? null,
      commit_sha: known?.commit_sha ?? state.commit_sha ?? null,
      build_key: known?.build_key ?? state.build_key ?? null,
      settings,
      configuration: known?.configuration ?? app.configuration,
      node_id,
      created_at: context.clock.iso(),
    },
    {
      ...environment,
      ...(hasWeb(settings) ? { PORT: String(settings.port) } : {}),
      PORTREEVE_APP: app.name,
      PORTREEVE_DEPLOYMENT_ID: deployment_id,
      ...(state.commit_sha ? { PORTREEVE_COMMIT: state.commit_sha } : {}),
    },
    variables,
    files,
  )
  context.deployments.change(deployment_id, { image: image.id, release_id: state.release_id })
  if (present) step.skip()
}

/** Fixes the release of a stack: with services of an earlier release, or with what the file says now. */
async function makeStack(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
  known: Release | undefined,
): Promise<void> {
  const { deployment_id } = step.payload
  const { state } = step
  const { trigger, ...row } = context.deployments.find(deployment_id)!
  const taken = requestOf(context.deployments.find(deployment_id)!).rebuild ? undefined : known
  const missing = taken?.settings.stack ? await missingImages(context, taken.settings.stack) : []
  if (missing.length > 0)
    throw new Fatal(
      'image_gone',
      `The image of ${missing.join(', ')} of that release is no longer on this server.`,
      'Deploy its commit again instead.',
    )
  const variables = known ? context.releases.variables(known.id) : context.ports.variables(app)
  const live = context.releases.find(app.live_release_id ?? '')
  const renew = trigger === 'restart' ? (requestOf(row).services ?? true) : false
  const made = taken
    ? {
        settings: adoptStack(taken, { live, release_id: state.release_id, renew }),
        secrets: context.releases.services(taken.id),
      }
    : await buildStack(context, step, app, variables)
  const { stack, main } = made.settings
  const image_id = stackImage(context, stack!)
  context.releases.ensure(
    {
      id: state.release_id,
      app_id: app.id,
      deployment_id,
      image_id,
      image_tag: null,
      commit_sha: known?.commit_sha ?? state.commit_sha ?? null,
      build_key: null,
      settings: made.settings,
      configuration: known?.configuration ?? app.configuration,
      node_id: await placeRelease(context, step, made.settings),
      created_at: context.clock.iso(),
    },
    {},
    variables,
    [],
    made.secrets,
  )
  const shown = stack!.find(({ name }) => name === main) ?? stack![0]!
  context.deployments.change(deployment_id, { image: shown.image_id, release_id: state.release_id })
  const names = stack!.filter(({ one_off }) => !one_off).map(({ name }) => name)
  context.ports.services.keep(app.id, app.project_id, names, false)
  if (taken) step.skip()
}

/** Removes the image and the release of a deployment that did not go live. */
export async function undoBuild(context: DeployContext, step: DeployStep): Promise<void> {
  const { state } = step
  context.releases.delete(state.release_id)
  context.deployments.change(step.payload.deployment_id, { release_id: null })
  for (const tag of state.image_tags ?? []) await context.engine.removeImage(tag)
  if (!state.built || !state.image_tag) return
  // Another release may have got the very same image from the layer cache: then only this tag goes.
  await context.engine.removeImage(state.image_tag)
}
