import type { SourceChecks } from './configuration.ts'
import type { RepositoryAccess } from './repository-access.ts'
import type { Apps } from './service.ts'

/** Apps as other modules see them. */
export interface AppsDomain extends Apps {
  /** Judges addresses, branches and images of requests; each refusal is a 422 that names its field. */
  checks: SourceChecks
  /** Tries the key or token that an app names for its repository. */
  access: RepositoryAccess
}
