import { describe, expect, it } from 'vitest'
import { createSlicedFilter } from '@/lib/sliced-filter'
import { nextTask } from '@/lib/tasks'

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n)
const even = (one: number) => one % 2 === 0

/** A filter whose clock goes on by a millisecond with each entry that it looks at. */
function watched() {
  const seen = { looks: 0, answers: [] as number[][] }
  const pauses: (() => void)[] = []
  const pause = () => new Promise<void>((done) => pauses.push(done))
  const filter = createSlicedFilter<number>((found) => seen.answers.push([...found]), {
    now: () => seen.looks,
    pause,
  })
  const counted = (test: (one: number) => boolean) => (one: number) => {
    seen.looks += 1
    return test(one)
  }
  /** Goes on until nothing waits any more. */
  const finish = async () => {
    while (pauses.length > 0) {
      pauses.shift()!()
      await nextTask()
    }
  }
  return { filter, seen, pauses, counted, finish }
}

describe('a search in 100,000 lines', () => {
  it('stops for the page again and again, and says nothing before it is complete', async () => {
    const { filter, seen, pauses, counted, finish } = watched()
    const lines = numbers(0, 100_000)
    filter.update(lines, counted(even))
    expect([seen.looks, seen.answers.length, pauses.length]).toEqual([100, 0, 1])
    await finish()
    expect(seen.answers).toEqual([lines.filter(even)])
  })
  it('is given up for the next question, and ended with its page', async () => {
    const { filter, seen, counted, finish } = watched()
    const lines = numbers(0, 1000)
    filter.update(lines, counted(even))
    filter.update(
      lines,
      counted((one) => one > 990),
    )
    await finish()
    expect(seen.answers).toEqual([numbers(991, 9)])
    filter.update(lines, undefined)
    expect(seen.answers.at(-1)).toEqual(lines)
    filter.update(lines, counted(even))
    filter.stop()
    await finish()
    expect(seen.answers).toHaveLength(2)
  })
})

describe('lines that come while a search shows', () => {
  it('are looked at alone', async () => {
    const { filter, seen, counted, finish } = watched()
    const lines = numbers(0, 1000)
    const question = counted(even)
    filter.update(lines, question)
    await finish()
    lines.push(1000, 1001)
    filter.update(lines, question)
    await finish()
    expect([seen.looks, seen.answers.at(-1)]).toEqual([1002, lines.filter(even)])
  })
  it('are found also when the oldest went, others were put before them, or all were read anew', async () => {
    const { filter, seen, counted, finish } = watched()
    const lines = numbers(1000, 1000)
    const question = counted(even)
    const answer = async () => {
      filter.update(lines, question)
      await finish()
      return seen.answers.at(-1)
    }
    await answer()
    lines.push(2000)
    lines.splice(0, 1)
    expect(await answer()).toEqual([1000, ...lines.filter(even)])
    expect(seen.looks).toBe(1001)
    lines.unshift(...numbers(500, 400))
    expect(await answer()).toEqual(lines.filter(even))
    lines.length = 0
    expect(await answer()).toEqual([])
    lines.push(...numbers(0, 300))
    expect(await answer()).toEqual(lines.filter(even))
  })
})
