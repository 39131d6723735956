import { afterEach, expect, it } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'
import { useGrowing } from '../../dashboard/src/lib/growing.ts'

let scope = effectScope()
afterEach(() => {
  scope.stop()
  scope = effectScope()
})
const rows = (from: number, count: number) => Array.from({ length: count }, (_, at) => ({ id: from + at }))
type Rows = ReturnType<typeof rows>

/** A list whose frames come when the test says so. */
function grow(given: Rows | undefined) {
  const all = ref(given)
  const waiting: (() => void)[] = []
  const pause = () => new Promise<void>((next) => waiting.push(next))
  const drawn = scope.run(() =>
    useGrowing(
      () => all.value,
      ({ id }) => id,
      { first: 2, step: 3, pause },
    ),
  )!
  const frame = async () => {
    for (const next of waiting.splice(0)) next()
    await Promise.resolve()
    await nextTick()
  }
  return { all, drawn, frame, ids: () => drawn.value?.map(({ id }) => id) }
}

it('draws the beginning at once and the rest in parts, until all is there', async () => {
  const { ids, frame } = grow(rows(0, 6))
  expect(ids()).toEqual([0, 1])
  await frame()
  expect(ids()).toEqual([0, 1, 2, 3, 4])
  await frame()
  await frame()
  expect(ids()).toEqual([0, 1, 2, 3, 4, 5])
})
it('shows nothing of what is still read, and begins once it is there', async () => {
  const { all, ids } = grow(undefined)
  expect(ids()).toBeUndefined()
  all.value = rows(0, 4)
  await nextTick()
  expect(ids()).toEqual([0, 1])
})
it('keeps what is drawn when rows change, come or go, so that nobody who scrolls is thrown back', async () => {
  const { all, ids, frame } = grow(rows(0, 5))
  await frame()
  all.value = [{ id: 99 }, ...rows(1, 4)]
  await nextTick()
  expect(ids()).toEqual([99, 1, 2, 3, 4])
})
it('begins anew with another list', async () => {
  const { all, ids, frame } = grow(rows(0, 5))
  await frame()
  all.value = rows(50, 5)
  await nextTick()
  expect(ids()).toEqual([50, 51])
})
