import { describe, expect, it } from 'vitest'
import { shareLookups } from '#server/platform/dns/shared-lookups'

/** Look-ups that end when the test says so, or with their signal. */
function world(most: number) {
  const begun: string[] = []
  const ended: string[] = []
  const answers = new Map<string, (found: string) => void>()
  const find = shareLookups<string>((name, signal) => {
    begun.push(name)
    return new Promise((resolve, reject) => {
      answers.set(name, resolve)
      signal.addEventListener('abort', () => {
        ended.push(name)
        reject(new Error('ended'))
      })
    })
  }, most)
  return { find, begun, ended, answer: (name: string) => answers.get(name)!(`of ${name}`) }
}

describe('a name that several ask for at once', () => {
  it('is looked up once for all of them, and anew for the next', async () => {
    const { find, begun, answer } = world(4)
    const both = [find('a'), find('a')]
    answer('a')
    expect(await Promise.all(both)).toEqual(['of a', 'of a'])
    const again = find('a')
    answer('a')
    await again
    expect(begun).toEqual(['a', 'a'])
  })
  it('is looked up for those who stay when one leaves, and for nobody once all have left', async () => {
    const { find, ended } = world(4)
    const [first, second] = [new AbortController(), new AbortController()]
    const waiting = [find('a', first.signal), find('a', second.signal)]
    const settled = Promise.allSettled(waiting)
    first.abort()
    await expect(waiting[0]).rejects.toMatchObject({ name: 'AbortError' })
    expect(ended).toEqual([])
    second.abort()
    expect(ended).toEqual(['a'])
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })
  it('is not looked up for somebody who has left already', async () => {
    const { find, begun } = world(4)
    await expect(find('a', AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' })
    expect(begun).toEqual([])
  })
})

describe('names that hang', () => {
  it('take the place of each other, the longest first, and never that of a name that answers', async () => {
    const { find, ended, answer } = world(3)
    const hanging: Promise<unknown>[] = []
    for (let at = 0; at < 20; at += 1) {
      hanging.push(find(`slow${at}`).catch((error: Error) => error.message))
      const innocent = find('innocent')
      answer('innocent')
      expect(await innocent).toBe('of innocent')
    }
    // Two stay beside the name that was asked for last; the others are over.
    expect(ended).toEqual(Array.from({ length: 18 }, (_, at) => `slow${at}`))
    expect(await Promise.all(hanging.slice(0, 18))).toEqual(Array(18).fill('ended'))
  })
})
