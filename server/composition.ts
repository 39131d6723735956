import type { Apps } from '#server/apps/service'
import { configurationOf } from '#server/apps/configuration'
import { defaultDockerignore } from '#server/builds/dockerignore'
import type { BuildOverrides, BuildPlan } from '#server/builds/plan'
import type { DeployPorts } from '#server/deployments/work'
import type { Domains } from '#server/domains/service'
import { invalid, notFound } from '#server/kernel/errors'
import type { GitCredential } from '#server/platform/git/git'
import { GitError } from '#server/platform/git/git'
import { checkRef, parseGitUrl } from '#server/platform/git/parse-url'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'

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
const IMAGE = new RegExp(`^(?:(?<host>[A-Za-z0-9.-]+(?::\\d{1,5})?|\\[[0-9a-fA-F:.]+\\](?::\\d{1,5})?)/)?(?<path>${COMPONENT}(?:/${COMPONENT})*)(?<tag>:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?<digest>@sha256:[0-9a-f]{64})?$`)

/** A reference as registries understand it, on a host that this server may connect to. */
function checkImage(text: string, policy: OutboundPolicy): void {
  const groups = IMAGE.exec(text)?.groups
  if (!groups) throw invalid('image', 'must be an image reference such as nginx:1.29 or registry.example.com/team/app@sha256:….')
  const { host } = groups
  // What builds of apps are kept under on the engine: naming it would run the image of another project.
  if (text.replace(/^([a-z0-9-]+\.)?docker\.io\//i, '').startsWith(OWN_IMAGES)) throw invalid('image', `must not begin with ${OWN_IMAGES}: these are images of apps of this installation.`)
  // The first part names a registry only when it looks like a host; else it belongs to the path.
  if (!host || !/[.:]|^localhost$/.test(host)) return
  const [, name = host, port = '443'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
  policy.checkHost(name, Number(port))
}

/** Works out how a folder is built. The stacks and their parsers are loaded by the first build: a start needs none of them. */
export async function detectFolder(directory: string, overrides: BuildOverrides): Promise<BuildPlan> {
  const [{ detect }, { openTree }] = await Promise.all([import('#server/builds/detect'), import('#server/builds/source-tree')])
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
}): DeployPorts {
  const environment: DeployPorts['environment'] = () => ({})
  return {
    app(id) {
      const row = parts.apps().find(id)
      if (!row) throw notFound('app')
      const { name, project_id, status, live_release_id, live_deployment_id, soak_seconds, auto_deploy } = row
      return { id, name, project_id, status, live_release_id, live_deployment_id, soak_seconds, auto_deploy: auto_deploy === 1, configuration: configurationOf(row) }
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
    environment,
    secretValues: (app) => [...parts.credentialValues(app.project_id), ...Object.values(environment(app))],
    detect: detectFolder,
    dockerignore: defaultDockerignore,
    async extract(archive, directory, signal) {
      const { extractTarGz } = await import('#server/platform/archive/extract')
      await extractTarGz(archive, directory, signal)
    },
  }
}
