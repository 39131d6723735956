/** One line of a chart; a null is a gap. */
export interface Line {
  label: string
  tone: 'accent' | 'good' | 'warn' | 'bad'
  values: readonly (number | null)[]
}

export const WIDTH = 600
export const HEIGHT = 120

/** The highest value that the axis shows: a round number above all of them. */
export function roundUp(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map((step) => step * power).find((round) => round >= value) ?? value
}

/** The path of a line, with a gap where nothing is known. */
export function pathOf(values: readonly (number | null)[], top: number): string {
  const last = Math.max(values.length - 1, 1)
  let is_open = false
  return values
    .map((value, at) => {
      if (value === null) {
        is_open = false
        return ''
      }
      const place = `${((at / last) * WIDTH).toFixed(1)} ${(HEIGHT - (value / top) * HEIGHT).toFixed(1)}`
      const step = `${is_open ? 'L' : 'M'}${place}`
      is_open = true
      return step
    })
    .join('')
}
