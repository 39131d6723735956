/** Median of a list of numbers. */
export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!

/** The value below which so many percent of the numbers lie. */
export const percentile = (values: readonly number[], percent: number): number =>
  values.toSorted((a, b) => a - b)[
    Math.min(values.length - 1, Math.ceil((values.length * percent) / 100) - 1)
  ]!

/**
 * Two-sided p of the Mann-Whitney test that both samples come from one distribution, by the normal
 * approximation.
 */
export function mannWhitney(a: readonly number[], b: readonly number[]): number {
  const all = [...a.map((value) => ({ value, of: 0 })), ...b.map((value) => ({ value, of: 1 }))].sort(
    (x, y) => x.value - y.value,
  )
  const ranks = all.reduce((sum, { of }, index) => sum + (of === 0 ? index + 1 : 0), 0)
  const u = ranks - (a.length * (a.length + 1)) / 2
  const z =
    Math.abs(u - (a.length * b.length) / 2) /
    Math.sqrt((a.length * b.length * (a.length + b.length + 1)) / 12)
  // Abramowitz and Stegun 7.1.26.
  const t = 1 / (1 + 0.3275911 * (z / Math.SQRT2))
  return (
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) *
    t *
    Math.exp(-(z * z) / 2)
  )
}
