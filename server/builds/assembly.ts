import type { SourceChecks } from '#server/apps/configuration'
import type { Base } from '#server/platform/base'
import type { PullOptions } from '#server/platform/engine/engine'
import type { GitCredential } from '#server/platform/git/git'
import { createGuardedClient } from '#server/platform/outbound/client'
import type { BuildsDomain } from './contract.ts'
import { defaultDockerignore } from './dockerignore.ts'
import type { DetectOptions } from './detect.ts'
import type { BuildPlan } from './plan.ts'
import { createDetection } from './service.ts'
import { createSourceGuard } from './source-guard.ts'

export interface BuildNeeds {
  apps: { checks: SourceChecks }
  git_credentials: { forUrl(project_id: string, git_url: string): GitCredential | undefined }
  registries: { authFor(image: string): PullOptions['auth'] }
  settings: { server(): { build_concurrency: number } }
}

/**
 * Works out how a folder is built. The stacks and their parsers are loaded by the first build: a start needs
 * none of them.
 */
async function detectFolder(directory: string, overrides: DetectOptions): Promise<BuildPlan> {
  const [{ detect }, { openTree }] = await Promise.all([import('./detect.ts'), import('./source-tree.ts')])
  return detect(openTree(directory), overrides)
}

/** How sources become images: the dry run of requests, and what deployments ask. */
export function createBuildsDomain(
  { engine, git, directories, guard, policy, jobs }: Base,
  use: BuildNeeds,
): BuildsDomain {
  jobs.resizePool('build', use.settings.server().build_concurrency)
  return {
    ...createDetection({
      git,
      work_directory: directories.work,
      detect: detectFolder,
      checks: {
        git_url: (text) => use.apps.checks.git_url(text),
        branch: (text) => use.apps.checks.branch(text),
      },
      credential: (project_id, git_url) => use.git_credentials.forUrl(project_id, git_url),
    }),
    detectFolder,
    ...createSourceGuard({
      engine,
      policy,
      client: createGuardedClient(policy),
      ...(guard ? { egress: guard.egress } : {}),
      registryAuth: (image) => use.registries.authFor(image),
    }),
    dockerignore: defaultDockerignore,
  }
}
