import type { Apps } from '#server/apps/service'
import { configurationOf } from '#server/apps/configuration'
import { defaultDockerignore } from '#server/builds/dockerignore'
import { dockerfileSources } from '#server/builds/dockerfile-sources'
import type { DetectOptions } from '#server/builds/detect'
import type { BuildPlan } from '#server/builds/plan'
import type { DeployPorts } from '#server/deployments/work'
import type { Domains } from '#server/domains/service'
import type { Variables } from '#server/env/service'
import { invalid, notFound } from '#server/kernel/errors'
import { Fatal } from '#server/kernel/jobs/definition'
import type { GitCredential } from '#server/platform/git/git'
import { GitError } from '#server/platform/git/git'
import { checkRef, parseGitUrl } from '#server/platform/git/parse-url'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import { registryHost } from '#server/registries/service'

/** Texts of a request that the installation's policy judges; each is a 422 that names its field. */
export function createSourceChecks(policy: OutboundPolicy) {
  const asking = (field: string, check: () => void) => {
    try {
      check()
    } catch (error) {
      if (error instanceof GitError) throw invalid(field, `${error.message} ${error.hint}`)
      if (error instanceof OutboundError) throw invalid(field, error.message)
      throw error
    }
  }
  return {
    git_url: (text: string) => asking('git_url', () => void parseGitUrl(text, policy)),
    branch: (text: string) => asking('branch', () => void checkRef(text)),
    image: (text: string) => asking('image', () => checkImage(text, policy)),
  }
}

const OWN_IMAGES = 'portreeve/'
const COMPONENT = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const IMAGE = new RegExp(
  `^(?:(?<host>[A-Za-z0-9.-]+(?::\\d{1,5})?|\\[[0-9a-fA-F:.]+\\](?::\\d{1,5})?)/)?(?<path>${COMPONENT}(?:/${COMPONENT})*)(?<tag>:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?<digest>@sha256:[0-9a-f]{64})?$`,
)

/** A reference as registries understand it, on a host that this server may connect to. */
function checkImage(text: string, policy: OutboundPolicy): void {
  const groups = IMAGE.exec(text)?.groups
  if (!groups)
    throw invalid(
      'image',
      'must be an image reference such as nginx:1.29 or registry.example.com/team/app@sha256:….',
    )
  const { host } = groups
  // What builds of apps are kept under on the engine: naming it would run the image of another project.
  if (text.replace(/^([a-z0-9-]+\.)?docker\.io\//i, '').startsWith(OWN_IMAGES))
    throw invalid(
      'image',
      `must not begin with ${OWN_IMAGES}: these are images of apps of this installation.`,
    )
  // The first part names a registry only when it looks like a host; else it belongs to the path.
  if (!host || !/[.:]|^localhost$/.test(host)) return
  const [, name = host, port = '443'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
  policy.checkHost(name, Number(port))
}

/** Reads Dockerfiles of users; another frontend could fetch whatever it likes. */
const FRONTEND = /^(?:docker\.io\/)?docker\/dockerfile(?:-upstream)?(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/
const refusedDockerfile = (message: string, hint: string) => new Fatal('dockerfile_refused', message, hint)

/**
 * Throws Fatal when a Dockerfile would make the engine fetch from where this server may not connect to: the
 * engine does so from this machine's own network.
 */
export async function checkDockerfile(
  dockerfile: string,
  build_args: Readonly<Record<string, string>>,
  policy: OutboundPolicy,
  signal: AbortSignal,
): Promise<void> {
  const { addresses, images, unclear, frontend } = dockerfileSources(dockerfile, build_args)
  if (frontend !== undefined && !FRONTEND.test(frontend))
    throw refusedDockerfile(
      'The Dockerfile names a frontend other than docker/dockerfile.',
      'Remove its «syntax» line, or name docker/dockerfile there.',
    )
  if (unclear.length > 0)
    throw refusedDockerfile(
      `The Dockerfile leaves open what ${unclear[0]!.slice(0, 200)} is: an address must be there as it is, up to its path.`,
      'Write the address out, or use COPY where it is a file.',
    )
  for (const address of addresses) {
    const scp = /^[\w.-]+@([^/:]+):/.exec(address)?.[1]
    const url = scp === undefined && URL.canParse(address) ? new URL(address) : undefined
    if (url?.username || url?.password || (!scp && !url?.hostname))
      throw refusedDockerfile(
        'An address that the Dockerfile adds cannot be read.',
        'Write it like https://example.com/file.tar.gz, without user name and password.',
      )
    await asFatal(() =>
      policy.resolve(
        scp ?? url!.hostname,
        Number(url?.port || (scp ? 22 : url!.protocol === 'http:' ? 80 : 443)),
        signal,
      ),
    )
  }
  for (const image of images) {
    const host = registryHost(image)
    const [, name = host, port = '443'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
    if (image.replace(/^([a-z0-9-]+\.)?docker\.io\//i, '').startsWith(OWN_IMAGES))
      throw refusedDockerfile(
        `The Dockerfile uses an image below ${OWN_IMAGES}, which belong to apps of this installation.`,
        'Use another base image.',
      )
    await asFatal(() => policy.checkHost(name, Number(port)))
  }
}
async function asFatal(check: () => unknown): Promise<void> {
  try {
    await check()
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'aborted') throw error
    throw refusedDockerfile(
      `The Dockerfile fetches from an address that is refused: ${error.message}`,
      'Use a public address, or copy the file into the repository.',
    )
  }
}

/**
 * Works out how a folder is built. The stacks and their parsers are loaded by the first build: a start needs
 * none of them.
 */
export async function detectFolder(directory: string, overrides: DetectOptions): Promise<BuildPlan> {
  const [{ detect }, { openTree }] = await Promise.all([
    import('#server/builds/detect'),
    import('#server/builds/source-tree'),
  ])
  return detect(openTree(directory), overrides)
}

/** The installation's side of the deploy runbook. */
export function createDeployPorts(parts: {
  apps(): Apps
  domains: Domains
  platformRoutes: DeployPorts['platformRoutes']
  certificates: DeployPorts['certificates']
  gitCredential(project_id: string, git_url: string): GitCredential | undefined
  registryAuth: DeployPorts['registryAuth']
  registryAuths: DeployPorts['registryAuths']
  /** Every token, key and password with which a project reaches what is elsewhere, in clear. */
  credentialValues(project_id: string): string[]
  env(): Pick<Variables, 'forRelease' | 'secretValues'>
  fingerprint: DeployPorts['fingerprint']
  policy: OutboundPolicy
}): DeployPorts {
  return {
    app(id) {
      const row = parts.apps().find(id)
      if (!row) throw notFound('app')
      const { name, project_id, status, live_release_id, live_deployment_id, soak_seconds, auto_deploy } = row
      return {
        id,
        name,
        project_id,
        status,
        live_release_id,
        live_deployment_id,
        soak_seconds,
        auto_deploy: auto_deploy === 1,
        configuration: configurationOf(row),
      }
    },
    projectOf: (app_id) => parts.apps().projectOf(app_id),
    setLive: (app_id, deployment_id, release_id) => parts.apps().setLive(app_id, deployment_id, release_id),
    appEvent: (app_id, event, payload) => void parts.apps().transition(app_id, event, payload),
    routes: (app_id, target) => parts.domains.routes(app_id, target),
    platformRoutes: parts.platformRoutes,
    certificates: parts.certificates,
    routed: (domain_ids) => parts.domains.activate(domain_ids),
    gitCredential: (app) => parts.gitCredential(app.project_id, app.configuration.git_url ?? ''),
    registryAuth: parts.registryAuth,
    registryAuths: parts.registryAuths,
    variables: (app) => parts.env().forRelease(app),
    fingerprint: parts.fingerprint,
    secretValues: (app) => [...parts.credentialValues(app.project_id), ...parts.env().secretValues(app)],
    detect: detectFolder,
    checkDockerfile: (dockerfile, build_args, signal) =>
      checkDockerfile(dockerfile, build_args, parts.policy, signal),
    dockerignore: defaultDockerignore,
    async extract(archive, directory, signal) {
      const { extractTarGz } = await import('#server/platform/archive/extract')
      await extractTarGz(archive, directory, signal)
    },
  }
}
