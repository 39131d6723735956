import { describe, expect, it } from 'vitest'
import { laneOf } from '../../scripts/lanes.ts'

const FILES = [
  'test/e2e/dashboard.test.ts',
  'test/e2e/story.test.ts',
  'test/e2e/compose.test.ts',
  ...Array.from({ length: 20 }, (_, index) => `test/e2e/other-${index}.test.ts`),
]

describe('the lanes of a test run', () => {
  it('run every file once between them, however the files are ordered', () => {
    const lanes = [laneOf(FILES, 1, 2), laneOf(FILES.toReversed(), 2, 2)]
    expect(lanes.flat().toSorted()).toEqual(FILES.toSorted())
  })
  it('share the files that take long', () => {
    const seconds = { 'test/e2e/dashboard.test.ts': 100, 'test/e2e/story.test.ts': 80 }
    const [first, second] = [laneOf(FILES, 1, 2, seconds), laneOf(FILES, 2, 2, seconds)]
    expect(first).toContain('test/e2e/dashboard.test.ts')
    expect(second).toContain('test/e2e/story.test.ts')
    expect(Math.abs(first.length - second.length)).toBeLessThan(5)
  })
  it('are one where there is one', () => {
    expect(laneOf(FILES, 1, 1).toSorted()).toEqual(FILES.toSorted())
  })
})
