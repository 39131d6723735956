import { describe, expect, it } from 'vitest'
import {
  HEIGHT,
  momentAt,
  nearestTo,
  pathOf,
  placeMarks,
  roundUp,
  spanOf,
  WIDTH,
} from '../../dashboard/src/lib/chart.ts'

const MINUTE = 60_000
const HOUR = { from: 0, to: 60 * MINUTE }

describe('a line of a chart', () => {
  it('goes from edge to edge and from the bottom to the top', () => {
    expect(pathOf([0, 60 * MINUTE], [0, 10], 10, HOUR)).toBe(`M0.0 ${HEIGHT}.0h0L${WIDTH}.0 0.0`)
  })
  it('stands at its time, even when samples before it are missing', () => {
    expect(pathOf([30 * MINUTE, 31 * MINUTE], [0, 0], 1, HOUR)).toMatch(/^M300\.0 /)
  })
  it('has a gap where nothing is known', () => {
    expect(pathOf([0, 1, 2], [1, null, 1], 1, { from: 0, to: 2 }).match(/M/g)).toHaveLength(2)
  })
  it('has a gap where samples are missing, but not where one was late', () => {
    const gone = [0, 1, 2, 30, 31].map((at) => at * MINUTE)
    const late = [0, 1, 2, 4, 5].map((at) => at * MINUTE)
    const starts = (times: number[]) => pathOf(times, [1, 1, 1, 1, 1], 1, HOUR).match(/M/g)
    expect(starts(gone)).toHaveLength(2)
    expect(starts(late)).toHaveLength(1)
  })
  it('has an axis that ends at a round number', () => {
    expect([0, 0.03, 7, 10, 41, 999].map(roundUp)).toEqual([1, 0.05, 10, 10, 50, 1000])
  })
})

describe('a range that is chosen in a chart', () => {
  it('goes from left to right, whichever way it was dragged', () => {
    expect(spanOf(40 * MINUTE, 10 * MINUTE)).toEqual({ from: 10 * MINUTE, to: 40 * MINUTE })
  })
  it('is never too short to tell anything', () => {
    const { from, to } = spanOf(10 * MINUTE, 10 * MINUTE + 10)
    expect(to - from).toBe(MINUTE)
  })
  it('stays within the chart', () => {
    expect([momentAt(HOUR, -0.2), momentAt(HOUR, 0.5), momentAt(HOUR, 3)]).toEqual([0, 30 * MINUTE, HOUR.to])
  })
  it('finds the sample that is nearest to the pointer', () => {
    expect([nearestTo([0, 10, 20], 14), nearestTo([0, 10, 20], 99), nearestTo([], 1)]).toEqual([
      1,
      2,
      undefined,
    ])
  })
})

describe('marks of a chart', () => {
  const mark = (minute: number) => ({
    at: minute * MINUTE,
    label: `#${minute}`,
    to: `/${minute}`,
    is_bad: false,
  })
  it('are those of the range, in their order', () => {
    expect(placeMarks([mark(50), mark(-3), mark(20), mark(61)], HOUR).map(({ label }) => label)).toEqual([
      '#20',
      '#50',
    ])
  })
  it('have a label where there is room for it, which counts the others', () => {
    const placed = placeMarks([mark(10), mark(12), mark(30), mark(59)], HOUR)
    expect(placed.map(({ is_labelled, is_left, others }) => [is_labelled, is_left, others])).toEqual([
      [true, false, ['#12']],
      [false, false, []],
      [true, false, []],
      [true, true, []],
    ])
  })
})
