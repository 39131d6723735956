import type { DetectOptions } from './detect.ts'
import type { ComposePlan } from '#server/compose/model'
import type { BuildPlan, SourceTree } from './plan.ts'
import type { CheckedDockerfile, SourceCheckOptions } from './source-guard.ts'
import type { Detection } from './service.ts'

/** Builds as other modules see them. */
export interface BuildsDomain extends Detection {
  /** How the source in a folder of an app is built and run. Throws a DetectionError when it is not understood. */
  detectFolder(directory: string, overrides: DetectOptions, app_id: string): Promise<BuildPlan>
  /** Loads what a detection needs, since a source of an app is on its way that will be looked at. */
  prepareDetection(app_id: string): void
  /**
   * A user's Dockerfile as it may be built. Throws Fatal when it would make the engine fetch from
   * where this server may not connect to, or read an image of another app.
   */
  checkDockerfile(dockerfile: string, options: SourceCheckOptions): Promise<CheckedDockerfile>
  /** Throws Fatal when the engine may not pull an image of this name. */
  checkImage(reference: string, signal: AbortSignal): Promise<void>
  /** The files of a folder, bounded, none of which leads out of it. */
  sourceTree(folder: string): Promise<SourceTree>
  /** What is shown of a compose file where other apps have the plan of their build. */
  composePlan(plan: ComposePlan): Promise<BuildPlan>
  /** Written beside a generated Dockerfile when the repository has no .dockerignore. */
  dockerignore(): string
}
