import type { NpmPart } from './npm.ts'

/** A Debian release that stand-ins are built on. */
export type Suite = 'bookworm' | 'trixie'

/** How one stand-in is made. Plain facts; `make.ts` has the only code that acts on them. */
export interface Recipe {
  /**
   * Unique; the image is kept as `portreeve/stand-in:<name>`, so that more names for it later cost nothing.
   */
  name: string
  /** The Debian release it is built on, or undefined for the release itself. */
  base: Suite | undefined
  /** Folder below `images/` with its Dockerfile. */
  context: string
  build_args?: Record<string, string>
  npm?: readonly NpmPart[]
  /** Prints the real version; runs in the image, so it also proves that the image works. */
  version: { command: readonly string[]; pattern: RegExp }
}

/**
 * A name that a Dockerfile may use, the family that `--only` selects it by, and the recipe of its stand-in.
 */
export interface Wanted {
  image: string
  family: string
  /** What the tag promises, to compare with what is really in the image. */
  version: string
  /** Undefined when no Debian or npm package can stand in for it. */
  recipe: Recipe | undefined
  /** Part of the set that is made when nothing is selected. */
  usual: boolean
  /** The version that an app gets which asks for none. */
  family_default: boolean
}

/** Compares two versions number by number: `3.9` comes before `3.11`. */
export function compareVersions(a: string, b: string): number {
  const left = a.split('.').map(Number),
    right = b.split('.').map(Number)
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/**
 * `same-major` for languages whose major versions break programs, `any` for those that keep running old ones.
 */
export type Compatibility = 'same-major' | 'any'

/**
 * The version that stands in for the one asked for: the lowest that is not older, else the newest there is.
 */
export function nearestVersion(
  asked: string,
  available: readonly string[],
  compatibility: Compatibility = 'same-major',
): string | undefined {
  const major = asked.split('.')[0]
  const sorted = available
    .filter((version) => compatibility === 'any' || version.split('.')[0] === major)
    .sort(compareVersions)
  return sorted.find((version) => compareVersions(version, asked) >= 0) ?? sorted.at(-1)
}
