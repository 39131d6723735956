import { own } from '#server/kernel/own'
import type {
  Release,
  Releases,
  ReleaseService,
  ServiceHealthCheck,
  ServiceSecrets,
  ServiceWords,
} from '../releases.ts'

/** A service with its words where the file has them. */
export type WordedService = Omit<ReleaseService, 'health_check' | 'made_by' | 'fingerprint'> &
  Omit<ServiceWords, 'health_command'> & { health_check: ServiceHealthCheck | null }

/**
 * Parts what anybody who reads the rows may see of a service from its words: a file puts passwords into commands,
 * as in `redis-server --requirepass ${REDIS_PASSWORD}`.
 */
export function withoutWords({ entrypoint, command, working_dir, health_check, ...open }: WordedService): {
  open: Omit<ReleaseService, 'made_by' | 'fingerprint'>
  words: ServiceWords
} {
  if (!health_check)
    return {
      open: { ...open, health_check: null },
      words: { entrypoint, command, working_dir, health_command: null },
    }
  const { command: health_command, ...times } = health_check
  return {
    open: { ...open, health_check: times },
    words: { entrypoint, command, working_dir, health_command },
  }
}

/** A service with all that is sealed of it. Throws SecretUnreadableError. */
export function openedService(
  releases: Pick<Releases, 'services'>,
  release: Pick<Release, 'id'>,
  service: ReleaseService,
): Pick<ServiceSecrets, 'environment' | 'files'> &
  Omit<ServiceWords, 'health_command'> & { health_check: ServiceHealthCheck | null } {
  const sealed = own(releases.services(release.id), service.name)
  const { environment = {}, files = [], words } = sealed ?? {}
  // The row of a release from before words were sealed has them itself.
  const { health_command, ...rest } = words ?? wordsInRow(service as ReleaseService & Partial<ServiceWords>)
  const health_check =
    service.health_check && health_command ? { ...service.health_check, command: health_command } : null
  return { environment, files, ...rest, health_check }
}

function wordsInRow({
  entrypoint = null,
  command = null,
  working_dir = null,
  health_check,
}: ReleaseService & Partial<ServiceWords>): ServiceWords {
  const health_command = (health_check as ServiceHealthCheck | null)?.command ?? null
  return { entrypoint, command, working_dir, health_command }
}
