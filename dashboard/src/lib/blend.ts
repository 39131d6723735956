/** The parts of `rgb(1, 2, 3)`, as browsers tell colours. */
const partsOf = (colour: string): number[] => (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number)

/** A share of one colour over another, as `#rrggbb`: some libraries take no other form. */
export function blend(over: string, under: string, share: number): string {
  const below = partsOf(under)
  const parts = partsOf(over).map((part, at) => part * share + (below[at] ?? 0) * (1 - share))
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`
}
