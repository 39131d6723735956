/** What an image says of itself and each of its containers says again. */
export interface ImageConfig {
  ExposedPorts?: Record<string, object> | null
  Cmd?: string[] | null
  Entrypoint?: string[] | null
  OnBuild?: string[] | null
  Labels?: Record<string, string> | null
  Volumes?: Record<string, object> | null
}

const KIB = 1024
/** All of it, with variables and commands: it is in each look at one of its containers. */
const MOST_CHARACTERS = 256 * KIB
/** Every list and every event of containers repeats them; images of buildpacks have some twenty KiB. */
const MOST_OF_LABELS = 64 * KIB
/** They are in every list, too. */
const MOST_PORTS = 1000
/** The engine makes a volume for each of them whenever it makes a container. */
const MOST_VOLUMES = 64

const sizeOf = (value: unknown): number => JSON.stringify(value ?? {}).length
const countOf = (names: object | null | undefined): number => Object.keys(names ?? {}).length

/**
 * In what an image says more than any real one does; undefined where it does not. The engine answers with the
 * words of all images at once: those of a single one of a hundred megabytes would keep every app from being
 * looked at.
 */
export function excessOf(config: ImageConfig | null): string | undefined {
  if (sizeOf(config?.Labels) > MOST_OF_LABELS) return `more than ${MOST_OF_LABELS / KIB} KiB of labels`
  if (countOf(config?.ExposedPorts) > MOST_PORTS) return `more than ${MOST_PORTS} exposed ports`
  if (countOf(config?.Volumes) > MOST_VOLUMES) return `more than ${MOST_VOLUMES} volumes`
  if (sizeOf(config) > MOST_CHARACTERS)
    return `more than ${MOST_CHARACTERS / KIB} KiB of variables, commands and the like`
  return undefined
}
