/** One line of a chart; a null is a gap. */
export interface Line {
  label: string
  tone: 'accent' | 'good' | 'warn' | 'bad'
  values: readonly (number | null)[]
}
/** A stretch of time, in milliseconds. */
export interface Span {
  from: number
  to: number
}
/** Something that happened while the lines were drawn, with the page about it. */
export interface Mark {
  at: number
  label: string
  to: string
  is_bad: boolean
}

export const WIDTH = 600
export const HEIGHT = 120
/** A sample may be late or lost; a line that lacks more than one of them has a gap. */
const GAP_STEPS = 2.5
/** Nothing is told apart within less. */
const SHORTEST_MS = 60_000
/** Shares of the width: how much a label takes, and from where on it stands to the left of its line. */
const LABEL = 0.17
const LEFT_FROM = 0.85

/** The highest value that the axis shows: a round number above all of them. */
export function roundUp(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map((step) => step * power).find((round) => round >= value) ?? value
}

/** Where a moment lies between the begin (0) and the end (1). */
export const shareOf = ({ from, to }: Span, at: number): number => (at - from) / Math.max(1, to - from)
/** The moment at a share of the width; never outside. */
export const momentAt = ({ from, to }: Span, share: number): number =>
  from + Math.min(1, Math.max(0, share)) * (to - from)

/** What was dragged over, from left to right and long enough to tell something. */
export function spanOf(one: number, other: number): Span {
  const [from, to] = [Math.min(one, other), Math.max(one, other)]
  const lacks = Math.max(0, SHORTEST_MS - (to - from)) / 2
  return { from: Math.round(from - lacks), to: Math.round(to + lacks) }
}

/** The sample that is nearest to a moment; undefined without samples. */
export function nearestTo(times: readonly number[], at: number): number | undefined {
  let best: number | undefined
  for (const [index, time] of times.entries())
    if (best === undefined || Math.abs(time - at) < Math.abs(times[best]! - at)) best = index
  return best
}

/** The path of a line, with a gap where nothing is known. A sample without neighbours is a dot. */
export function pathOf(
  times: readonly number[],
  values: readonly (number | null)[],
  top: number,
  span: Span,
): string {
  const steps = times.slice(1).map((time, at) => time - times[at]!)
  const longest = steps.reduce((least, step) => Math.min(least, step), Number.POSITIVE_INFINITY) * GAP_STEPS
  let before: number | undefined
  return values
    .map((value, at) => {
      if (value === null) return ''
      const time = times[at]!
      const place = `${(shareOf(span, time) * WIDTH).toFixed(1)} ${(HEIGHT - (value / top) * HEIGHT).toFixed(1)}`
      const goes_on = before !== undefined && before === at - 1 && time - times[before]! <= longest
      before = at
      return goes_on ? `L${place}` : `M${place}h0`
    })
    .join('')
}

/** Marks of a span with their places. One label stands for those that are too near to it for one of their own. */
export function placeMarks(marks: readonly Mark[], span: Span) {
  const found = marks
    .filter(({ at }) => at >= span.from && at <= span.to)
    .toSorted((one, other) => one.at - other.at)
    .map((mark) => ({ ...mark, share: shareOf(span, mark.at), others: [] as string[], is_labelled: false }))
  let free = 0
  let last: (typeof found)[number] | undefined
  return found.map((mark) => {
    const is_left = mark.share > LEFT_FROM
    const begin = is_left ? mark.share - LABEL : mark.share
    if (last && begin < free) last.others.push(mark.label)
    else {
      last = mark
      mark.is_labelled = true
      free = begin + LABEL
    }
    return Object.assign(mark, { is_left })
  })
}
