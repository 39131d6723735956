/** A server that takes work now. */
export interface Candidate {
  /** Null for the server of Portreeve itself. */
  node_id: string | null
  memory_bytes: number
  /** Limits of what runs there, without what is to be placed. */
  promised_bytes: number
}

/**
 * How much larger the free share of another server has to be for an app to leave the one that it is on: its image has
 * to get there, and a difference that comes and goes must not move apps to and fro.
 */
const WORTH_A_MOVE = 0.2

const freeShare = ({ memory_bytes, promised_bytes }: Candidate): number =>
  memory_bytes > 0 ? (memory_bytes - promised_bytes) / memory_bytes : 0
const hasRoom = ({ memory_bytes, promised_bytes }: Candidate, needs_bytes: number): boolean =>
  memory_bytes - promised_bytes >= needs_bytes

/**
 * The server for a release: of those with room, or of all where none has any, the one with the largest share of memory
 * that is promised to nobody; the first of them where they are equal.
 * @param candidates never none, since this server takes work always.
 * @param current where the app is now; undefined where it is nowhere.
 */
export function chooseServer(
  candidates: readonly Candidate[],
  { needs_bytes, current }: { needs_bytes: number; current: string | null | undefined },
): string | null {
  const roomy = candidates.filter((one) => hasRoom(one, needs_bytes))
  const considered = roomy.length > 0 ? roomy : candidates
  const best = considered.reduce((found, one) => (freeShare(one) > freeShare(found) ? one : found))
  const known = considered.find(({ node_id }) => node_id === current)
  return known && freeShare(best) - freeShare(known) < WORTH_A_MOVE ? known.node_id : best.node_id
}
