import { describe, expect, it } from 'vitest'
import { HEIGHT, pathOf, roundUp, WIDTH } from '../../dashboard/src/lib/chart.ts'

describe('a line of a chart', () => {
  it('goes from edge to edge and from the bottom to the top', () => {
    expect(pathOf([0, 10], 10)).toBe(`M0.0 ${HEIGHT}.0L${WIDTH}.0 0.0`)
  })
  it('has a gap where nothing is known', () => {
    expect(pathOf([1, null, 1], 1).match(/M/g)).toHaveLength(2)
  })
  it('has an axis that ends at a round number', () => {
    expect([0, 0.03, 7, 10, 41, 999].map(roundUp)).toEqual([1, 0.05, 10, 10, 50, 1000])
  })
})
