import type { ArchiveRow, CopyRow, PieceRow } from './repository.ts'

const DAY_MS = 86_400_000
const ready = (copies: readonly CopyRow[]) =>
  copies.filter(
    (copy): copy is CopyRow & { ready_at: string } => copy.ready_at !== null && copy.status === 'ready',
  )

/** From when to when an archive can bring its database back; undefined while it cannot. */
export function windowOf(
  { complete_until }: Pick<ArchiveRow, 'complete_until'>,
  copies: readonly CopyRow[],
): { from: string; until: string } | undefined {
  const [first] = ready(copies)
  return first && complete_until !== null && complete_until >= first.ready_at
    ? { from: first.ready_at, until: complete_until }
    : undefined
}

/** The newest copy that was whole at a moment: the shortest way to it. */
export const copyFor = (copies: readonly CopyRow[], at: string): CopyRow | undefined =>
  ready(copies).findLast(({ ready_at }) => ready_at <= at)

/**
 * Pieces that a copy needs to reach a moment, in their order; `undefined` where one of them is missing.
 *
 * @param pieces all from the copy's first one on.
 */
export function piecesFor(
  copy: Pick<CopyRow, 'first_piece'>,
  pieces: readonly PieceRow[],
  at: string,
  next: (name: string) => string,
): PieceRow[] | undefined {
  const last = pieces.findIndex(({ complete_until }) => complete_until !== null && complete_until >= at)
  const needed = last === -1 ? [...pieces] : pieces.slice(0, last + 1)
  let expected = copy.first_piece
  for (const { name } of needed) {
    if (name !== expected) return undefined
    expected = next(name)
  }
  return needed.length > 0 ? needed : undefined
}

/**
 * Whether a moment comes twice in these pieces, since the clock was set back while they were written. The server stops
 * at the first commit after the moment: of what was committed since, nothing would be there, and nobody would hear of it.
 */
export function comesTwice(pieces: readonly PieceRow[], at: string): boolean {
  const known = pieces.flatMap(({ complete_until }) => complete_until ?? [])
  const reached = known.findIndex((until) => until >= at)
  return reached !== -1 && known.slice(reached).some((until) => until < at)
}

/** What an archive no longer needs: copies, and pieces before the one that is named (all where none is). */
export interface Leftover {
  whole: boolean
  copies: CopyRow[]
  before: string | undefined
}
/** Keeps the newest copy that is as old as what must be possible, and everything after it. */
export function leftover(
  { status, days, complete_until }: Pick<ArchiveRow, 'status' | 'days' | 'complete_until'>,
  copies: readonly CopyRow[],
  now_ms: number,
): Leftover {
  const horizon = new Date(now_ms - days * DAY_MS).toISOString()
  const is_over = status === 'closed' && (complete_until ?? '') < horizon
  if (is_over || (status === 'closed' && ready(copies).length === 0))
    return { whole: true, copies: [...copies], before: undefined }
  const oldest = copyFor(copies, horizon) ?? ready(copies)[0]
  const gone = copies.filter(
    (copy) =>
      copy.status === 'failed' ||
      (copy.status === 'ready' && oldest !== undefined && copy.ready_at! < oldest.ready_at!),
  )
  const firsts = copies.filter((copy) => !gone.includes(copy)).map(({ first_piece }) => first_piece)
  return { whole: false, copies: gone, before: firsts.sort()[0] }
}
