/** Part of the places that one project never holds while others do work too; at least one place. */
const KEPT_FOR_OTHERS = 1 / 4

/** How many of so many places one project may hold. Of a single place there is none to keep. */
export const placesOfOne = (size: number): number =>
  size < 2 ? size : size - Math.max(1, Math.floor(size * KEPT_FOR_OTHERS))

/** The projects that do work on the installation: nothing is kept free for one that never does. */
export interface Tenants {
  add(projects: readonly (string | null)[]): void
  /** Whether other projects than this one do work. */
  others(project: string): boolean
}

export function createTenants(): Tenants {
  const known = new Set<string>()
  return {
    add(projects) {
      for (const project of projects) if (project !== null) known.add(project)
    },
    others: (project) => known.size > (known.has(project) ? 1 : 0),
  }
}
