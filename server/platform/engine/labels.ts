import { own } from '#server/kernel/own'
import type { Labels } from './engine.ts'
import { OWNER_KINDS, type Owner } from './workload.ts'

const PREFIX = 'portreeve.'
const MANAGED = 'managed'
const INSTALLATION = 'installation'
/** Every label that is read of containers, beside the marks. */
const OF_CONTAINERS = [
  ...OWNER_KINDS,
  'project',
  'release',
  'process',
  'index',
  'run',
  'spec',
  'caps',
] as const
type OwnLabel = (typeof OF_CONTAINERS)[number] | typeof MANAGED | typeof INSTALLATION

/**
 * A container inherits each label of its image that it does not have itself, and the image may be a user's:
 * these empty ones, below its own, leave nothing to inherit of what is read.
 */
export const NOTHING_INHERITED: Readonly<Record<string, string>> = Object.fromEntries(
  OF_CONTAINERS.map((key) => [PREFIX + key, '']),
)

/** Labels as one installation of Portreeve writes and finds them. */
export interface LabelScope {
  /** Labels as the engine stores them, below our prefix and with the installation's mark. */
  stored(labels: Labels): Record<string, string>
  /** A filter for objects of this installation that carry all of these labels. */
  filter(labels: Labels): string[]
  /** Whether this installation made an object. */
  owns(stored: Record<string, string> | null | undefined): boolean
}

/**
 * Everything that is made carries the installation's name, and only what carries it is ever looked at or
 * removed: two installations on one engine, or a test beside a live server, must not take each other's
 * containers for orphans.
 */
export function createLabelScope(installation: string): LabelScope {
  const mark = { [MANAGED]: 'true', [INSTALLATION]: installation }
  const stored = (labels: Labels) =>
    Object.fromEntries(Object.entries({ ...labels, ...mark }).map(([key, value]) => [PREFIX + key, value]))
  return {
    stored,
    filter: (labels) => Object.entries(stored(labels)).map(([key, value]) => `${key}=${value}`),
    owns: (labels) => ownLabel(labels, MANAGED) === 'true' && ownLabel(labels, INSTALLATION) === installation,
  }
}

/** One label of ours from what the engine stores; an empty one is none. */
export const ownLabel = (
  stored: Record<string, string> | null | undefined,
  key: OwnLabel,
): string | undefined => own(stored, PREFIX + key) || undefined

/** Labels of ours alone: those of an image, which its containers repeat, may be of any length. */
export function withoutForeign(stored: Record<string, string> | null | undefined): Record<string, string> {
  const names = [...OF_CONTAINERS, MANAGED, INSTALLATION].map((key) => PREFIX + key)
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = own(stored, name)
      return value ? [[name, value]] : []
    }),
  )
}

/** Whether a container is an instance of a release, and no one-off run. */
export const isInstance = (stored: Record<string, string> | null | undefined): boolean =>
  ownLabel(stored, 'index') !== undefined

/** The name of an instance in the engine, derived from ids so that another attempt finds what there is. */
export const instanceName = (
  release_id: string,
  process: string | undefined,
  index: number | string,
): string => (process ? `${release_id}-${process}-${index}` : `${release_id}-${index}`)

/**
 * Whether an instance is called what its labels say. Tools that duplicate a container, or change a setting of one,
 * copy the labels along: what they make is no instance of ours, and gets no requests.
 */
export function isNamedAsLabelled(
  names: readonly string[] | null | undefined,
  stored: Record<string, string> | null | undefined,
): boolean {
  const [release, index] = [ownLabel(stored, 'release') ?? '', ownLabel(stored, 'index') ?? '']
  return (names ?? []).includes(`/${instanceName(release, ownLabel(stored, 'process'), index)}`)
}

/** Whom a container runs for; the id is kept below the kind. */
export function ownerOf(stored: Record<string, string> | null | undefined): Owner | undefined {
  const kind = OWNER_KINDS.find((known) => ownLabel(stored, known) !== undefined)
  return kind && { kind, id: ownLabel(stored, kind)! }
}
