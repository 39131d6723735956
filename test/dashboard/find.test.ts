import { expect, it } from 'vitest'
import { findById } from '../../dashboard/src/api/find.ts'

/** A list of 250, as the API gives it out. */
const ask = async ({ page, per_page }: { page: number; per_page: number }) => {
  const all = Array.from({ length: 250 }, (_, at) => ({ id: `whk_${at}` }))
  return {
    data: { data: all.slice((page - 1) * per_page, page * per_page), pages: Math.ceil(250 / per_page) },
  }
}

it('one thing is found on whatever page of its list it is', async () => {
  expect(await findById('whk_7', ask)).toEqual({ id: 'whk_7' })
  expect(await findById('whk_249', ask)).toEqual({ id: 'whk_249' })
})
it('what is in no page is null, which pages tell from what is not known yet', async () => {
  expect(await findById('whk_250', ask)).toBeNull()
})
