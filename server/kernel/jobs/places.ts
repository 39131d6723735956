import { placesOfOne, type Tenants } from './tenants.ts'

/**
 * Jobs under way for each place, of all projects and of one, those that wait among them: they are in memory, and each
 * start takes them up.
 */
const UNDER_WAY = { all: 16, of_one: 4 }

/** A job under way, as far as its place goes. */
export interface Occupant {
  project_id: string | null
  /** Whether it does nothing but wait, for which it needs no place. */
  isWaiting(): boolean
}

/** How the places of jobs are taken at one moment. */
export interface Places {
  free(): number
  /** Whether a project, or the platform, has so many jobs under way that further ones of it have to wait. */
  isFull(project: string | null): boolean
  full(): (string | null)[]
  add(occupant: Occupant): void
}

/**
 * Counts who has the places among so many. Jobs that wait (for a pool, for their time, for somebody else) take none,
 * else those of two projects that hang would keep everybody from everything; only so many are under way all the same.
 * While other projects do work, one leaves a part to them, and the last places are for projects that have none: a few
 * with as many as they may have take no such place.
 */
export function countPlaces(
  most: number,
  tenants: Pick<Tenants, 'others'>,
  under_way: Iterable<Occupant>,
): Places {
  const kept = most - placesOfOne(most)
  const shares = new Map<string | null, { all: number; at_work: number }>()
  let [at_work, count] = [0, 0]
  const isFull = (project: string | null): boolean => {
    const own = shares.get(project) ?? { all: 0, at_work: 0 }
    if (own.all >= most * UNDER_WAY.of_one || (own.all > 0 && count >= most * UNDER_WAY.all)) return true
    if (project === null || !tenants.others(project)) return false
    return own.at_work >= most - kept || (own.at_work > 0 && most - at_work <= kept)
  }
  const places: Places = {
    free: () => most - at_work,
    isFull,
    full: () => [...shares.keys()].filter(isFull),
    add(occupant) {
      const own = shares.get(occupant.project_id) ?? { all: 0, at_work: 0 }
      const one = occupant.isWaiting() ? 0 : 1
      shares.set(occupant.project_id, { all: own.all + 1, at_work: own.at_work + one })
      at_work += one
      count += 1
    },
  }
  for (const occupant of under_way) places.add(occupant)
  return places
}
