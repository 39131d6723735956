/** What instances may use together. */
export interface Share {
  memory_bytes: number
  /** In cores. */
  cpus: number
}

export const NO_SHARE: Share = { memory_bytes: 0, cpus: 0 }
export const sumOf = (shares: readonly Share[]): Share =>
  shares.reduce(
    (sum, { memory_bytes, cpus }) => ({
      memory_bytes: sum.memory_bytes + memory_bytes,
      cpus: sum.cpus + cpus,
    }),
    NO_SHARE,
  )
/** The larger of two in each of what they hold. */
export const largerOf = (one: Share, other: Share): Share => ({
  memory_bytes: Math.max(one.memory_bytes, other.memory_bytes),
  cpus: Math.max(one.cpus, other.cpus),
})
/** What the first is more than the second; less than nothing where it is less. */
export const differenceOf = (one: Share, other: Share): Share => ({
  memory_bytes: one.memory_bytes - other.memory_bytes,
  cpus: one.cpus - other.cpus,
})
