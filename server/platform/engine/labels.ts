import { own } from '#server/kernel/own'
import type { Labels } from './engine.ts'
import { OWNER_KINDS, type Owner } from './workload.ts'

const PREFIX = 'portreeve.'
const MANAGED = 'managed'
const INSTALLATION = 'installation'

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

/** One label of ours from what the engine stores. */
export const ownLabel = (
  stored: Record<string, string> | null | undefined,
  key: string,
): string | undefined => own(stored, PREFIX + key)

/** The label that tells instances of releases from one-off runs. */
export const INDEX_LABEL = `${PREFIX}index`

/** Whom a container runs for; the id is kept below the kind. */
export function ownerOf(stored: Record<string, string> | null | undefined): Owner | undefined {
  const kind = OWNER_KINDS.find((known) => ownLabel(stored, known) !== undefined)
  return kind && { kind, id: ownLabel(stored, kind)! }
}
