import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BuildPlan, overridesOf } from '#server/builds/plan'
import { buildArguments, buildSecrets, portOf, runtimeValues } from '#server/env/resolved'
import { sourceFolder } from '#server/platform/archive/source-folder'
import { Fatal } from '#server/kernel/jobs/definition'
import type { BuildLogLine, Image } from '#server/platform/engine/engine'
import { askOf } from '../repository.ts'
import { hasWeb, requireSound } from '../processes.ts'
import { settingsOf, strangeProcesses } from '../release-settings.ts'
import type { Release } from '../releases.ts'
import { appToBuild, type DeployContext, type DeployedApp, type Workshop } from '../work.ts'
import { buildInputs, mountScope } from '../build-inputs.ts'
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
export async function detectStep(shop: Workshop, context: DeployContext): Promise<void> {
  const { deployment_id } = context.payload
  const app = appToBuild(shop, context)
  const { configuration } = app
  const { from_release, rebuild } = askOf(shop.deployments.find(deployment_id)!)
  if (context.state.image_id || (from_release && !rebuild) || configuration.source === 'image') {
    if (context.state.plan)
      shop.deployments.change(deployment_id, { plan: JSON.stringify(context.state.plan) })
    return context.skip()
  }
  if (configuration.source === 'compose') return detectStack(shop, context, app)
  let plan: BuildPlan
  if (configuration.source === 'dockerfile') {
    plan = inlinePlan(app)
  } else {
    const variables = shop.ports.variables(app)
    const repository = sourceDirectory(shop, deployment_id)
    const folder = sourceFolder(repository, configuration.base_directory)
    plan = await shop.ports.detect(folder, {
      ...overridesOf(configuration.build, configuration.port ?? portOf(variables)),
      app: app.name,
      repository,
      build_args: Object.keys({ ...buildArguments(variables), ...configuration.build.args }),
      build_secrets: Object.keys(buildSecrets(variables)).length > 0,
    })
    if (plan.stack !== 'dockerfile') addDockerignore(folder, shop.ports.dockerignore())
  }
  context.state.plan = plan
  shop.deployments.change(deployment_id, { plan: JSON.stringify(plan) })
  const named = [plan.stack, plan.framework, plan.version].filter(Boolean).join(' ')
  shop.logs.append(deployment_id, 'detect', 'system', `Detected ${named}.`)
  for (const { field, value, source } of plan.explanation)
    shop.logs.append(deployment_id, 'detect', 'system', `  ${field}: ${value} (${source})`)
}

/** What a build needs beside an image as large as the last one: layers that are packed and unpacked. */
const BUILD_ROOM_BYTES = 2 * 1024 ** 3

/** Frees unused images and build cache where the build would not fit; that it cannot is no reason not to try. */
async function makeRoom(
  shop: Workshop,
  app: DeployedApp,
  onLog: (line: BuildLogLine) => void,
): Promise<void> {
  try {
    const live = app.live_release_id ? shop.releases.find(app.live_release_id) : undefined
    const last = live && (await shop.engine.findImage(live.image_id))
    const freed = await shop.ports.makeRoom(BUILD_ROOM_BYTES + (last?.size_bytes ?? 0))
    if (freed === undefined) return
    const text = `The disk has little room for a build: ${Math.round(freed / 1024 ** 2)} MiB of unused images and build cache were removed.`
    onLog({ stream: 'system', text })
  } catch (error) {
    shop.log.warn('No room could be made for a build', { app_id: app.id, error })
  }
}

async function make(shop: Workshop, context: DeployContext, app: DeployedApp): Promise<Image> {
  const { deployment_id } = context.payload
  const onLog = (line: { stream: 'stdout' | 'stderr' | 'system'; text: string }) =>
    shop.logs.append(deployment_id, 'build', line.stream, line.text)
  if (app.configuration.source === 'image') {
    return pull(shop, app.configuration.image!, onLog, context.signal)
  }
  const plan = context.state.plan!
  const tag = `portreeve/${app.id}:${deployment_id}`
  context.state.built = true
  context.state.image_tag = tag
  // Variables may have changed since the source was fetched: the image is of those that it is built with.
  if (context.state.build_key) context.state.build_key = buildKey(shop, app, context.state.commit_sha!)
  context.save()
  const { build_args, secrets, notes } = buildInputs(shop, app, plan)
  for (const text of notes) onLog({ stream: 'system', text })
  const dockerfile =
    plan.stack === 'dockerfile'
      ? await shop.ports.checkDockerfile(plan.dockerfile, { build_args, onLog, signal: context.signal })
      : plan.dockerfile
  await makeRoom(shop, app, onLog)
  return shop.engine.buildImage(
    {
      context: sourceFolder(
        sourceDirectory(shop, deployment_id),
        app.configuration.source === 'dockerfile' ? '.' : app.configuration.base_directory,
      ),
      dockerfile,
      tag,
      labels: { app: app.id, deployment: deployment_id, project: app.project_id },
      build_args,
      secrets,
      registries: shop.ports.registryAuths(app, `${plan.dockerfile} ${Object.values(build_args).join(' ')}`),
      no_cache: askOf(shop.deployments.find(deployment_id)!).no_cache ?? false,
      // What a preview leaves in the cache must not reach builds of the project, nor other previews.
      cache_scope: app.preview_id ?? app.project_id,
      mount_scope: mountScope(shop, app),
      limits: shop.defaults.build,
      onLog,
    },
    context.signal,
  )
}

/** Builds or pulls the image, or takes that of an earlier release, and fixes the release. */
export async function buildStep(shop: Workshop, context: DeployContext): Promise<void> {
  const { deployment_id, app_id } = context.payload
  const { state } = context
  const app = appToBuild(shop, context)
  const ask = askOf(shop.deployments.find(deployment_id)!)
  const known = ask.from_release ? shop.releases.find(ask.from_release) : undefined
  if (app.configuration.source === 'compose') return makeStack(shop, context, app, known)
  const wanted = ask.rebuild ? state.image_id : (known?.image_id ?? state.image_id)
  const present = wanted ? await shop.engine.findImage(wanted) : undefined
  if (known && wanted && !present)
    throw new Fatal(
      'image_gone',
      'The image of that release is no longer on this server.',
      'Deploy its commit again instead.',
    )
  if (wanted && !present)
    throw new Fatal(
      'image_gone',
      'The image that was to be used again has been removed.',
      'Deploy again with no_cache.',
    )
  const image = present ?? (await make(shop, context, app))
  state.image_id = image.id
  const taken = known && !ask.fresh_variables ? known : undefined
  const variables = taken ? shop.releases.variables(taken.id) : shop.ports.variables(app)
  const environment = taken ? shop.releases.environment(taken.id) : runtimeValues(variables)
  const mounts = shop.ports.mounts(app_id)
  const files = known ? shop.releases.files(known.id) : mounts.files
  const settings = known
    ? known.settings
    : settingsOf(shop.defaults, app, { plan: state.plan, image, port: portOf(variables), mounts })
  for (const text of known ? [] : strangeProcesses(state.plan, app.configuration))
    shop.logs.append(deployment_id, 'build', 'system', text)
  requireSound(settings)
  shop.releases.ensure(
    {
      id: state.release_id,
      app_id,
      deployment_id,
      image_id: image.id,
      image_tag: (ask.rebuild ? undefined : known?.image_tag) ?? state.image_tag ?? null,
      commit_sha: known?.commit_sha ?? state.commit_sha ?? null,
      build_key: known?.build_key ?? state.build_key ?? null,
      settings,
      configuration: known?.configuration ?? app.configuration,
      created_at: shop.clock.iso(),
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
  shop.deployments.change(deployment_id, { image: image.id, release_id: state.release_id })
  if (present) context.skip()
}

/** Fixes the release of a stack: with services of an earlier release, or with what the file says now. */
async function makeStack(
  shop: Workshop,
  context: DeployContext,
  app: DeployedApp,
  known: Release | undefined,
): Promise<void> {
  const { deployment_id } = context.payload
  const { state } = context
  const { trigger, ...row } = shop.deployments.find(deployment_id)!
  const taken = askOf(shop.deployments.find(deployment_id)!).rebuild ? undefined : known
  const missing = taken?.settings.stack ? await missingImages(shop, taken.settings.stack) : []
  if (missing.length > 0)
    throw new Fatal(
      'image_gone',
      `The image of ${missing.join(', ')} of that release is no longer on this server.`,
      'Deploy its commit again instead.',
    )
  const variables = known ? shop.releases.variables(known.id) : shop.ports.variables(app)
  const live = shop.releases.find(app.live_release_id ?? '')
  const renew = trigger === 'restart' ? (askOf(row).services ?? true) : false
  const made = taken
    ? {
        settings: adoptStack(taken, { live, release_id: state.release_id, renew }),
        secrets: shop.releases.services(taken.id),
      }
    : await buildStack(shop, context, app, variables)
  const { stack, main } = made.settings
  const image_id = stackImage(shop, stack!)
  shop.releases.ensure(
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
      created_at: shop.clock.iso(),
    },
    {},
    variables,
    [],
    made.secrets,
  )
  const shown = stack!.find(({ name }) => name === main) ?? stack![0]!
  shop.deployments.change(deployment_id, { image: shown.image_id, release_id: state.release_id })
  const names = stack!.filter(({ one_off }) => !one_off).map(({ name }) => name)
  shop.ports.services.keep(app.id, app.project_id, names, false)
  if (taken) context.skip()
}

/** Removes the image and the release of a deployment that did not go live. */
export async function undoBuild(shop: Workshop, context: DeployContext): Promise<void> {
  const { state } = context
  shop.releases.delete(state.release_id)
  shop.deployments.change(context.payload.deployment_id, { release_id: null })
  for (const tag of state.image_tags ?? []) await shop.engine.removeImage(tag)
  if (!state.built || !state.image_tag) return
  // Another release may have got the very same image from the layer cache: then only this tag goes.
  await shop.engine.removeImage(state.image_tag)
}
