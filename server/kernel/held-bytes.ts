import { ApiError } from './errors.ts'

export interface HeldBytesOptions {
  /** Bytes of one owner, and of all together. */
  of_one: number
  of_all: number
}

/** What one body is never asked about: as little as its headers may have. */
const FREE_BYTES = 16_384

/**
 * Counts what is in memory until a body is whole, which its sender may put off: whoever opens many connections has
 * a share of it. Small bodies are always taken.
 */
export function createHeldBytes({ of_one, of_all }: HeldBytesOptions) {
  const held = new Map<string, number>()
  let total = 0
  const add = (owner: string, bytes: number): void => {
    total += bytes
    const now = (held.get(owner) ?? 0) + bytes
    if (now > 0) held.set(owner, now)
    else held.delete(owner)
  }
  return {
    /** One body of an owner. Release it in any case: what was refused counts until then. */
    open(owner: string) {
      let [size, counted] = [0, 0]
      return {
        /** Throws RATE_LIMITED for what is too much now. */
        hold(bytes: number): void {
          size += bytes
          const more = Math.max(0, size - FREE_BYTES) - counted
          if (more === 0) return
          counted += more
          add(owner, more)
          if (held.get(owner)! > of_one || total > of_all)
            throw new ApiError(
              'RATE_LIMITED',
              'Too many large bodies are on their way. Send this one again in a moment.',
              undefined,
              10,
            )
        },
        release(): void {
          add(owner, -counted)
          counted = 0
        },
      }
    },
  }
}
export type HeldBytes = ReturnType<typeof createHeldBytes>
