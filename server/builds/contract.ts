import type { DetectOptions } from './detect.ts'
import type { BuildPlan } from './plan.ts'
import type { Detection } from './service.ts'

/** Builds as other modules see them. */
export interface BuildsDomain extends Detection {
  /** How the source in a folder is built and run. Throws a DetectionError when it is not understood. */
  detectFolder(directory: string, overrides: DetectOptions): Promise<BuildPlan>
  /**
   * Throws Fatal when a user's Dockerfile would make the engine fetch from where this server may not connect
   * to.
   */
  checkDockerfile(
    dockerfile: string,
    build_args: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>
  /** Written beside a generated Dockerfile when the repository has no .dockerignore. */
  dockerignore(): string
}
