import { ApiError } from './errors.ts'

export interface HeldBytesOptions {
  /** Bytes of one owner, and of all together. */
  of_one: number
  of_all: number
  /** What is told to one too many. */
  refusal: string
}

/** What one body or answer is never asked about: as little as its headers may have. */
const FREE_BYTES = 16_384

/**
 * Counts what is in memory until a body is whole or an answer is taken, which somebody else may put off: whoever
 * opens many connections has a share of it. Small ones are always taken.
 */
export function createHeldBytes({ of_one, of_all, refusal }: HeldBytesOptions) {
  const held = new Map<string, number>()
  let total = 0
  const add = (owner: string, bytes: number): void => {
    total += bytes
    const now = (held.get(owner) ?? 0) + bytes
    if (now > 0) held.set(owner, now)
    else held.delete(owner)
  }
  const isTooMuch = (owner: string) => (held.get(owner) ?? 0) > of_one || total > of_all
  const refuse = () => new ApiError('RATE_LIMITED', refusal, undefined, 10)
  return {
    /** Throws RATE_LIMITED for an owner who holds too much already, unless it is about something small. */
    requireRoom(owner: string, bytes = Number.POSITIVE_INFINITY): void {
      if (bytes > FREE_BYTES && held.has(owner) && isTooMuch(owner)) throw refuse()
    },
    /** One body of an owner. Release it in any case: what was refused counts until then. */
    open(owner: string) {
      let [size, counted] = [0, 0]
      /** False for what is too much now. */
      const count = (bytes: number): boolean => {
        size += bytes
        const more = Math.max(0, size - FREE_BYTES) - counted
        if (more === 0) return true
        counted += more
        add(owner, more)
        return !isTooMuch(owner)
      }
      return {
        /** Counts what is there already, too much or not. */
        count: (bytes: number): void => void count(bytes),
        /** Throws RATE_LIMITED for what is too much now. */
        hold(bytes: number): void {
          if (!count(bytes)) throw refuse()
        },
        release(): void {
          add(owner, -counted)
          size = counted = 0
        },
      }
    },
  }
}
export type HeldBytes = ReturnType<typeof createHeldBytes>
