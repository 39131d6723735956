import { Fatal } from '#server/kernel/jobs/definition'
import { withinRoom } from '#server/kernel/watched-room'
import type { Engine } from './engine.ts'

/** What takes less since it began did not fill the disk: somebody in an outage gets a small database back. */
const WORTH_BYTES = 64 * 1024 ** 2

const filled = () =>
  new Fatal(
    'disk_full',
    'The disk of this server has no room for what is restored: the rest is kept for what runs on it.',
    'Free space, then try again.',
  )

/**
 * Fills data beside what serves. What a dump makes of itself there nobody knows before, and no app
 * could be stopped for it: it ends before the disk is so full that those of others are.
 */
export async function sparingDisk<T>(
  engine: Pick<Engine, 'freeForCopies'>,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const before = await engine.freeForCopies(signal).catch(() => undefined)
  async function isFull(): Promise<boolean> {
    const now = await engine.freeForCopies(signal)
    return before !== undefined && now !== undefined && now <= 0 && before - now >= WORTH_BYTES
  }
  return withinRoom(signal, { isFull, filled }, work)
}
