import type { SourceChecks } from '#server/apps/configuration'
import type { Base } from '#server/platform/base'
import type { GitCredential } from '#server/platform/git/git'
import { checkDockerfile } from './check-dockerfile.ts'
import type { BuildsDomain } from './contract.ts'
import { defaultDockerignore } from './dockerignore.ts'
import type { DetectOptions } from './detect.ts'
import type { BuildPlan } from './plan.ts'
import { createDetection } from './service.ts'

export interface BuildNeeds {
  apps: { checks: SourceChecks }
  git_credentials: { forUrl(project_id: string, git_url: string): GitCredential | undefined }
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
export function createBuildsDomain({ git, directories, policy, jobs }: Base, use: BuildNeeds): BuildsDomain {
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
    checkDockerfile: (dockerfile, build_args, signal) =>
      checkDockerfile(dockerfile, build_args, policy, signal),
    dockerignore: defaultDockerignore,
  }
}
