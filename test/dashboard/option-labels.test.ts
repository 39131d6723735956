import { expect, it } from 'vitest'
import { readSources } from '../meta/sources.ts'

/** What a choice as wide as a phone shows of an option. */
const MOST = 36

it('an option of a choice is short enough to be read whole at 390 pixels', () => {
  const long = readSources(['dashboard/src'], '.vue').flatMap(({ path, text }) =>
    [...text.matchAll(/\{ value: [^,{}]+, label: '([^']+)' \}/g)]
      .map(([, label]) => label!)
      .filter((label) => label.length > MOST)
      .map((label) => `${path}: ${label}`),
  )
  expect(long).toEqual([])
})
