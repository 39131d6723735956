import * as v from 'valibot'
import {
  Branch,
  BuildSettings,
  Compose,
  ComposePath,
  Dockerfile,
  GitUrl,
  HealthCheck,
  ImageReference,
  Limits,
  Port,
  Processes,
  Replicas,
  RepositoryPath,
  Soak,
  WatchPaths,
} from './configuration-schema.ts'
import { AppSource } from './schema.ts'

/**
 * An app's row as a copy keeps it: everything that a user sets, apart from its name. A copy may come from outside,
 * so that each field has the rules that it has in a request; what this version does not know is left out.
 */
export const AppSnapshot = v.object({
  configuration: v.object({
    source: AppSource,
    git_url: v.nullable(GitUrl),
    branch: v.nullable(Branch),
    image: v.nullable(ImageReference),
    dockerfile: v.nullable(Dockerfile),
    compose: v.optional(v.nullable(Compose), null),
    compose_path: v.optional(v.nullable(ComposePath), null),
    base_directory: RepositoryPath,
    build: BuildSettings,
    port: v.nullable(Port),
    health_check: HealthCheck,
    replicas: Replicas,
    limits: Limits,
    processes: v.optional(Processes, {}),
  }),
  auto_deploy: v.boolean(),
  watch_paths: WatchPaths,
  soak_seconds: Soak,
})
export type AppSnapshot = v.InferOutput<typeof AppSnapshot>
