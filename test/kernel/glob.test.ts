import { expect, it } from 'vitest'
import { createGlob } from '#server/kernel/glob'

it('folders within folders are folders, and cost no more', () => {
  const [one, many] = [createGlob('**/x*y*z'), createGlob(`${'**/'.repeat(300)}x*y*z`)]
  expect(many.steps).toBe(one.steps)
  for (const path of ['xyz', 'a/xyz', 'a/b/x1y2z', 'a/x/yz', '/xyz', 'ax1y2z'])
    expect([path, many.test(path)]).toEqual([path, one.test(path)])
})
