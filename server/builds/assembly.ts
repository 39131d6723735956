import type { SourceChecks } from '#server/apps/configuration'
import type { GitAccess } from '#server/git-credentials/module'
import type { Base } from '#server/platform/base'
import type { PullOptions } from '#server/platform/engine/engine'
import type { BuildsDomain } from './contract.ts'
import { defaultDockerignore } from './dockerignore.ts'
import { detectApart, prepareDetection } from './detect-apart.ts'
import { createDetection } from './service.ts'
import { openTree } from './source-tree.ts'
import { createSourceGuard } from './source-guard.ts'

export interface BuildNeeds {
  apps: { checks: SourceChecks }
  git_credentials: Pick<GitAccess, 'forUrl' | 'requireChosen'>
  registries: { authFor(image: string): PullOptions['auth'] }
  settings: { server(): { build_concurrency: number } }
}

/** How sources become images: the dry run of requests, and what deployments ask. */
export function createBuildsDomain(
  { engine, git, directories, guard, policy, client, jobs }: Base,
  use: BuildNeeds,
): BuildsDomain {
  jobs.resizePool('build', use.settings.server().build_concurrency)
  return {
    ...createDetection({
      git,
      work_directory: directories.work,
      detect: (directory, overrides) => detectApart(directory, overrides),
      checks: {
        git_url: (text) => use.apps.checks.git_url(text),
        branch: (text) => use.apps.checks.branch(text),
      },
      credential(project_id, requested) {
        use.git_credentials.requireChosen(project_id, requested.git_url, requested)
        return use.git_credentials.forUrl(project_id, requested.git_url, requested)
      },
    }),
    detectFolder: (directory, overrides, owner) => detectApart(directory, overrides, { owner }),
    prepareDetection: (owner) => prepareDetection(owner),
    ...createSourceGuard({
      engine,
      policy,
      client,
      ...(guard ? { egress: guard.egress } : {}),
      registryAuth: (image) => use.registries.authFor(image),
    }),
    sourceTree: openTree,
    composePlan: async (plan) => (await import('./compose-plan.ts')).composeBuildPlan(plan),
    dockerignore: defaultDockerignore,
  }
}
