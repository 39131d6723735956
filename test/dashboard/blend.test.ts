import { expect, it } from 'vitest'
import { blend } from '../../dashboard/src/lib/blend.ts'

it('a colour over another is between the two', () => {
  expect(blend('rgb(255, 255, 255)', 'rgb(5, 0, 0)', 0.5)).toBe('#828080')
  expect(blend('rgba(1, 2, 3, 0.5)', 'rgb(9, 9, 9)', 1)).toBe('#010203')
})
