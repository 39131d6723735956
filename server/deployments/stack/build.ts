import type { ComposePlan, ComposeService } from '#server/compose/model'
import { mainService } from '#server/compose/main-service'
import { buildArguments, buildSecrets, portOf, type ReleaseVariables } from '#server/env/resolved'
import { Fatal } from '#server/kernel/jobs/definition'
import { own } from '#server/kernel/own'
import { sourceFolder } from '#server/platform/archive/source-folder'
import type { Image } from '#server/platform/engine/engine'
import { cacheScopes, checkedDockerfile, howToMount, openArguments, secretIn } from '../build-inputs.ts'
import { instancesOf } from '../processes.ts'
import { settingsOf } from '../release-settings.ts'
import type { Release, ReleaseService, ReleaseSettings, ServiceSecrets } from '../releases.ts'
import { requestOf } from '../repository.ts'
import { pull } from '../steps/pull.ts'
import { sourceDirectory } from '../steps/source.ts'
import type { DeployStep, DeployedApp, DeployContext } from '../work.ts'
import { readStack, stackFolder } from './plan.ts'
import { withoutWords, type WordedService } from './words.ts'

interface Made {
  settings: ReleaseSettings
  secrets: Record<string, ServiceSecrets>
}
type LogLine = (line: { stream: 'stdout' | 'stderr' | 'system'; text: string }) => void

/** The services of a new release: images are built or pulled, and what did not change is told from what did. */
export async function buildStack(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
  variables: ReleaseVariables,
): Promise<Made> {
  const plan = await readStack(context, step, app)
  const before = context.releases.find(app.live_release_id ?? '')
  const volumes = await context.ports.stackVolumes(app, plan.services.flatMap(mountsOf))
  const stack: ReleaseService[] = []
  const secrets: Record<string, ServiceSecrets> = {}
  for (const service of plan.services) {
    const old = before?.settings.stack?.find(({ name }) => name === service.name)
    const image = await imageOf(context, step, app, { service, old, variables })
    const hidden = secretsOf(app, service)
    const known = { ...wordedOf(context, app, plan, service), ...image, volumes: volumesOf(service, volumes) }
    // Without the name of its image, which every deployment makes anew: what counts is what it is.
    const fingerprint = context.ports.fingerprint([{ ...known, image_tag: null }, hidden])
    const made_by = old?.fingerprint === fingerprint ? old.made_by : step.state.release_id
    const { open, words } = withoutWords(known)
    secrets[service.name] = { ...hidden, words }
    stack.push({ ...open, fingerprint, made_by })
  }
  const settings = stackSettings(context, app, { plan, stack, variables })
  requireRunning(settings)
  return { settings, secrets }
}

const mountsOf = ({ name, mounts }: ComposeService) =>
  mounts.flatMap((mount) =>
    mount.kind === 'volume'
      ? [{ volume: mount.volume, service: name, path: mount.path, read_only: mount.read_only }]
      : [],
  )
const volumesOf = ({ mounts }: ComposeService, ids: ReadonlyMap<string, string>): ReleaseService['volumes'] =>
  mounts.flatMap((mount) =>
    mount.kind === 'volume'
      ? [{ kind: 'volume', volume_id: ids.get(mount.volume)!, path: mount.path, read_only: mount.read_only }]
      : [],
  )

const secretsOf = (app: DeployedApp, { environment, mounts }: ComposeService): ServiceSecrets => ({
  environment: { ...environment, PORTREEVE_APP: app.name },
  files: mounts.flatMap((mount) => (mount.kind === 'file' ? [mount] : [])),
})

/** A service as its file says, but for its image, its volumes, its environment and its files. */
function wordedOf(
  context: DeployContext,
  app: DeployedApp,
  plan: ComposePlan,
  service: ComposeService,
): Omit<WordedService, 'reference' | 'image_id' | 'image_tag' | 'volumes'> {
  const { name, health_check, limits, mounts } = service
  const used = plan.variables.filter(({ paths }) =>
    paths.some((path) => path.startsWith(`services.${name}.`)),
  )
  return {
    name,
    entrypoint: service.entrypoint,
    command: service.command,
    user: service.user,
    working_dir: service.working_dir,
    read_only: service.read_only,
    memory: mounts.flatMap((mount) =>
      mount.kind === 'tmpfs' ? [{ kind: 'memory', path: mount.path, size_bytes: mount.size_bytes }] : [],
    ),
    aliases: service.aliases,
    public_port: service.public_port,
    health_path: service.health_path,
    health_check: typeof health_check === 'string' ? null : health_check,
    depends_on: service.depends_on,
    // A stranger's file does not decide how many containers start here: it may say a hundred of
    // each of sixty.
    replicas: context.ports.isTrusted(app) ? service.replicas : Math.min(service.replicas, 1),
    limits: { ...context.defaults.instance, ...app.configuration.limits, ...limits },
    stop_grace_s: service.stop_grace_s,
    one_off: service.one_off,
    variables: used.map((use) => use.name),
  }
}

/** The image of a service. One that is named as before is not looked up again: it would restart a database. */
async function imageOf(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
  { service, old, variables }: { service: ComposeService; old?: ReleaseService; variables: ReleaseVariables },
): Promise<Pick<ReleaseService, 'reference' | 'image_id' | 'image_tag'>> {
  const { deployment_id } = step.payload
  const onLog: LogLine = ({ stream, text }) =>
    context.logs.append(deployment_id, 'build', stream, `${service.name} | ${text}`)
  if (service.build) {
    const tag = `portreeve/${app.id}:${deployment_id}-${service.name.toLowerCase()}`
    step.state.built = true
    step.state.image_tags = [...new Set([...(step.state.image_tags ?? []), tag])]
    step.save()
    const image = await build(context, step, app, { service, tag, variables, onLog })
    return { reference: null, image_id: image.id, image_tag: tag }
  }
  const reference = service.image!
  const fresh = requestOf(context.deployments.find(deployment_id)!).no_cache ?? false
  const is_known = !fresh && old?.reference === reference
  const may_keep = is_known && context.ports.registryAuth(app, reference) !== 'withheld'
  if (may_keep && (await context.engine.findImage(old.image_id)))
    return { reference, image_id: old.image_id, image_tag: null }
  const image = await pull(context, app, reference, onLog, step.signal)
  return { reference, image_id: image.id, image_tag: null }
}

async function build(
  context: DeployContext,
  step: DeployStep,
  app: DeployedApp,
  {
    service,
    tag,
    variables,
    onLog,
  }: { service: ComposeService; tag: string; variables: ReleaseVariables; onLog: LogLine },
): Promise<Image> {
  const { context: folder, dockerfile, inline, args, target } = service.build!
  const root = stackFolder(context, step.payload.deployment_id, app)
  const source =
    root === undefined ? sourceDirectory(context, step.payload.deployment_id) : sourceFolder(root, folder)
  const named = dockerfile ?? 'Dockerfile'
  const text = inline ?? (await context.ports.sourceTree(source)).read(named)
  if (text === undefined)
    throw new Fatal(
      'dockerfile_missing',
      `The service ${service.name} is built from ${folder}, which has no ${named}.`,
      'Set build.dockerfile in the compose file.',
    )
  const held = secretIn(inline ?? '', variables)
  if (held !== undefined)
    throw new Fatal(
      'compose_refused',
      `The Dockerfile of the service ${service.name} in the compose file holds the secret ${held}, and would keep it in the image.`,
      howToMount(held),
    )
  const open = openArguments(args, variables)
  for (const note of open.notes) onLog({ stream: 'system', text: note })
  const build_args = { ...buildArguments(variables), ...app.configuration.build.args, ...open.build_args }
  return context.engine.buildImage(
    {
      context: source,
      ...(await checkedDockerfile(context, app, text, { build_args, onLog, signal: step.signal })),
      tag,
      // Nothing that differs from one deployment to the next: a service that did not change keeps
      // its image.
      labels: { app: app.id, project: app.project_id },
      build_args,
      secrets: buildSecrets(variables),
      registries: context.ports.registryAuths(app, `${text} ${Object.values(build_args).join(' ')}`),
      no_cache: requestOf(context.deployments.find(step.payload.deployment_id)!).no_cache ?? false,
      ...cacheScopes(context, app),
      limits: context.defaults.build,
      ...(target === null ? {} : { target }),
      onLog,
    },
    step.signal,
  )
}

function stackSettings(
  context: DeployContext,
  app: DeployedApp,
  { plan, stack, variables }: { plan: ComposePlan; stack: ReleaseService[]; variables: ReleaseVariables },
): ReleaseSettings {
  const main = mainService(plan.services)
  const mounts = context.ports.mounts(app)
  const base = settingsOf(context.defaults, app, {
    plan: undefined,
    image: { exposed_ports: [] } as unknown as Image,
    port: portOf(variables),
    mounts: { ...mounts, volumes: stack.flatMap(({ volumes }) => volumes), exclusive: [] },
  })
  return {
    ...base,
    stack,
    ...(main ? { main: main.name } : {}),
    web: main !== undefined,
    port: main?.public_port ?? base.port,
    shell_command: null,
    processes: [],
  }
}

function requireRunning(settings: ReleaseSettings): void {
  if (instancesOf(settings) === 0)
    throw new Fatal(
      'nothing_to_run',
      'No service of the compose file has an instance.',
      'Set replicas to 1 or more.',
    )
}

/** What a restart or a rollback takes over: the services of an earlier release, those that run as they are. */
export function adoptStack(
  known: Release,
  {
    live,
    release_id,
    renew,
  }: { live: Release | undefined; release_id: string; renew: boolean | readonly string[] },
): ReleaseSettings {
  const stack = known.settings.stack!.map((service) => {
    const running = live?.settings.stack?.find(({ name }) => name === service.name)
    const again = typeof renew === 'boolean' ? renew : renew.includes(service.name)
    const made_by = !again && running?.fingerprint === service.fingerprint ? running.made_by : release_id
    return { ...service, made_by }
  })
  return { ...known.settings, stack }
}

/** One name for all images of a stack, so that releases with the same ones are told from others. */
export const stackImage = (context: DeployContext, stack: readonly ReleaseService[]): string =>
  `stack:${context.ports.fingerprint(stack.map(({ name, image_id }) => [name, image_id]))}`

/** Services of a release whose image is no longer here. */
export async function missingImages(
  context: DeployContext,
  stack: readonly ReleaseService[],
): Promise<string[]> {
  const missing: string[] = []
  for (const { name, image_id } of stack) if (!(await context.engine.findImage(image_id))) missing.push(name)
  return missing
}

/** Names of variables that a service uses, with their values in a release. */
export const variablesOf = (service: ReleaseService, variables: ReleaseVariables) =>
  service.variables.flatMap((name) => {
    const one = own(variables, name)
    return one ? [{ name, value: one.value, secret: one.secret }] : []
  })
