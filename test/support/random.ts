import { randomInt } from 'node:crypto'

/** Random choices that are the same ones for the same seed, so that what a fuzzer found can be seen again. */
export interface Random {
  /** From 0 up to 1. */
  next(): number
  one<T>(of: readonly T[]): T
  some(chance: number): boolean
  /** A whole number from 0 up to, and without, the limit. */
  below(limit: number): number
  many<T>(most: number, make: () => T): T[]
}

/** mulberry32: a generator of numbers in a few lines, good enough to vary inputs. */
export function randomOf(seed: number): Random {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    one: (of) => of[below(of.length)]!,
    some: (chance) => next() < chance,
    below,
    many: (most, make) => Array.from({ length: below(most + 1) }, make),
  }
}

/**
 * Runs a check with seeds that once found something, then with drawn ones: for a minute in all of
 * `npm test`, for a minute each with `npm run fuzz`; `FUZZ_SEED` runs one again.
 */
export async function fuzz(
  kept: readonly number[],
  moment_s: number,
  check: (random: Random, label: string) => unknown,
): Promise<void> {
  const run = (seed: number, from: string) => check(randomOf(seed), `FUZZ_SEED=${seed} (${from})`)
  const given = process.env.FUZZ_SEED
  if (given !== undefined) return void (await run(Number(given), 'given'))
  for (const seed of kept) await run(seed, 'kept')
  const end = performance.now() + Number(process.env.FUZZ_SECONDS ?? moment_s) * 1000
  while (performance.now() < end) await run(randomInt(2 ** 31), 'drawn')
}
