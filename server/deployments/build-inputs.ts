import { type BuildPlan, renderSecretsFile, SECRETS_ARGUMENT, SECRETS_FILE } from '#server/builds/plan'
import type { SourceCheckOptions } from '#server/builds/source-guard'
import type { BuildSpec } from '#server/platform/engine/engine'
import { buildArguments, buildSecrets, type ReleaseVariables } from '#server/env/resolved'
import type { DeployedApp, DeployContext } from './work.ts'

/** What a build gets besides its source: arguments, which end up in the image, and mounts, which do not. */
export interface BuildInputs {
  build_args: Record<string, string>
  secrets: Record<string, string>
  /** Sentences for the log. */
  notes: string[]
}

/** Read by the builder itself; a generated Dockerfile needs none of them. */
const OF_BUILDER = /^BUILDKIT_/

/** Names that a Dockerfile takes as arguments. */
const declaredIn = (dockerfile: string): string[] =>
  [...dockerfile.matchAll(/^[ \t]*ARG[ \t]+([A-Za-z_]\w*)/gim)].map(([, name]) => name!)

/**
 * Build variables of an app for a plan. A generated Dockerfile sets secrets from one mounted file
 * before each command of the repository; one of the repository asks for them by name:
 * `RUN --mount=type=secret,id=KEY`.
 */
export function buildInputs(context: DeployContext, app: DeployedApp, plan: BuildPlan): BuildInputs {
  const variables = context.ports.variables(app)
  const secret = buildSecrets(variables)
  const build_args = { ...buildArguments(variables), ...app.configuration.build.args }
  if (plan.stack === 'dockerfile') {
    const hidden = declaredIn(plan.dockerfile).filter(
      (name) => Object.hasOwn(secret, name) && !Object.hasOwn(build_args, name),
    )
    const notes = hidden.map(
      (name) =>
        `ARG ${name} stays empty: the variable is a secret, and arguments end up in the image. Read it from a mount: RUN --mount=type=secret,id=${name} … /run/secrets/${name}`,
    )
    return { build_args, secrets: secret, notes }
  }
  const own = Object.entries(build_args).filter(([name]) => !OF_BUILDER.test(name))
  if (!plan.dockerfile.includes(`id=${SECRETS_FILE}`))
    return { build_args: Object.fromEntries(own), secrets: {}, notes: [] }
  return {
    build_args: {
      ...Object.fromEntries(own),
      [SECRETS_ARGUMENT]: context.ports.fingerprint(secret),
    },
    secrets: { [SECRETS_FILE]: renderSecretsFile(secret) },
    notes: [],
  }
}

/** Shorter values are met by chance, and no log masks them either. */
const LEAST_SECRET = 8

/** Name of the secret that a text holds the value of, if it holds one. */
export const secretIn = (text: string, variables: ReleaseVariables): string | undefined =>
  Object.entries(variables).find(
    ([, { secret, value }]) => secret && value.length >= LEAST_SECRET && text.includes(value),
  )?.[0]
export const howToMount = (name: string): string =>
  `Give ${name} the scope “build” and read it from a mount: RUN --mount=type=secret,id=${name} … /run/secrets/${name}`

/**
 * Arguments that a compose file gives the build of a service, without those that took in a secret:
 * the file puts variables into them whatever they are, and arguments end up in the image.
 */
export function openArguments(
  args: Readonly<Record<string, string>>,
  variables: ReleaseVariables,
): Pick<BuildInputs, 'build_args' | 'notes'> {
  const build_args: Record<string, string> = {}
  const notes: string[] = []
  for (const [name, text] of Object.entries(args)) {
    const held = secretIn(text, variables)
    if (held === undefined) build_args[name] = text
    else
      notes.push(
        `ARG ${name} stays empty: it holds the secret ${held}, and arguments end up in the image. ${howToMount(held)}`,
      )
  }
  return { build_args, notes }
}

/**
 * Whose caches a build gets. Layers are those of the project; what a preview leaves there must not
 * reach builds of the project, nor other previews. Mounts are those of the app alone, begun anew by
 * each deployment that asked for a build without caches. A commit that may not have secrets neither
 * sees what was made with them, nor leaves something there that runs where they are.
 */
export function cacheScopes(context: DeployContext, app: DeployedApp) {
  const trust = context.ports.isTrusted(app) ? '' : ' without trust'
  return {
    cache_scope: `${app.preview_id ?? app.project_id}${trust}`,
    mount_scope: `${app.id} ${context.deployments.lastUncached(app.id) ?? ''}${trust}`,
  }
}

/**
 * Looks at a Dockerfile of a user: its text as it may be built, and which images the builder may
 * then use. What a base image brings with it nobody could look at, so that of registries whose
 * login is withheld only what is named counts.
 */
export async function checkedDockerfile(
  context: DeployContext,
  app: DeployedApp,
  text: string,
  options: Omit<SourceCheckOptions, 'isWithheld'>,
): Promise<Required<Pick<BuildSpec, 'dockerfile' | 'mayUse'>>> {
  const isWithheld = (image: string) => context.ports.registryAuth(app, image) === 'withheld'
  const checked = await context.ports.checkDockerfile(text, { ...options, isWithheld })
  const mayUse = (image: string) => checked.unseen(image) ?? (!isWithheld(image) || checked.names(image))
  return { dockerfile: checked.text, mayUse }
}
