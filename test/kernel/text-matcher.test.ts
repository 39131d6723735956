import { describe, expect, it } from 'vitest'
import { createTextMatcher, LONGEST, SHORTEST } from '#server/kernel/text-matcher'
import { fuzz, randomOf } from '#test/support/random'

/** The same by looking for each text at each place. */
function slowly(texts: readonly string[], text: string): string {
  const found = new Array<boolean>(text.length).fill(false)
  for (const one of texts)
    for (let at = text.indexOf(one); at >= 0; at = text.indexOf(one, at + 1))
      found.fill(true, at, at + one.length)
  return found.map((is) => (is ? '#' : '.')).join('')
}
function quickly(texts: readonly string[], text: string): string {
  const found = new Array<string>(text.length).fill('.')
  for (const [from, to] of createTextMatcher(texts).spans(text)) found.fill('#', from, to)
  return found.join('')
}

describe('texts are found wherever they stand, and nothing else is', () => {
  it('in random texts of few letters', () =>
    fuzz([1, 2, 3, 4, 5, 6, 7, 8], 0.3, (random, label) => {
      const letters = [...'abcdé'].slice(0, 1 + random.below(5))
      const word = (length: number) => Array.from({ length }, () => random.one(letters)).join('')
      const longest = random.one([SHORTEST + 4, 24, 80, LONGEST])
      const texts = Array.from({ length: 1 + random.below(40) }, () =>
        word(SHORTEST + random.below(longest - SHORTEST + 1)),
      )
      // Beginnings, middles and whole ones, one after another and into each other.
      const parts = random.many(24, () => {
        const one = random.one(texts)
        const from = random.some(0.5) ? 0 : random.below(one.length)
        return word(random.below(3)) + one.slice(from, random.some(0.5) ? undefined : from + 9)
      })
      const text = parts.join('')
      expect(quickly(texts, text), label).toBe(slowly(texts, text))
    }))

  it('also when one is the beginning of another that does not go on', () => {
    const whole = String.fromCodePoint(...Array.from({ length: LONGEST }, (_, i) => 0x100 + i))
    for (let long = SHORTEST + 1; long <= whole.length; long += 1)
      for (const short of [SHORTEST, Math.ceil((SHORTEST + long) / 2), long - 1]) {
        const texts = [whole.slice(0, short), whole.slice(0, long)]
        for (let shown = short; shown <= long; shown += 1)
          expect(quickly(texts, `${whole.slice(0, shown)}!`)).toBe(
            '#'.repeat(shown === long ? long : short).padEnd(shown + 1, '.'),
          )
      }
  })

  it('and of very long ones each piece, so that the first half of one is found as well', () => {
    const { below } = randomOf(5)
    const long = Array.from({ length: 1_000 }, () => below(36).toString(36)).join('')
    expect(quickly([long], `see ${long}.`)).toBe(`....${'#'.repeat(1_000)}.`)
    expect(quickly([long], long.slice(0, 600))).toBe('#'.repeat(512) + '.'.repeat(88))
  })
})

it('a line costs some look-ups a character, however many texts begin like it', () => {
  const texts = Array.from({ length: 2_000 }, (_, i) => `aaaaaaaa${i.toString().padStart(5, '0')}`)
  for (let length = SHORTEST; length < LONGEST; length += 1) texts.push(`${'a'.repeat(length)}b`)
  const work = { lookups: 0 }
  createTextMatcher(texts).spans('a'.repeat(16_000), work)
  expect(work.lookups).toBeLessThanOrEqual(16_000 * 10)
})

it('a line without secrets costs no look-ups but by chance, of whichever characters it is', () => {
  const { below } = randomOf(7)
  const word = () => Array.from({ length: 40 }, () => below(36).toString(36)).join('')
  const matcher = createTextMatcher(Array.from({ length: 100 }, word))
  for (const line of [
    'x'.repeat(8_000),
    '\u4e2d\u6587'.repeat(4_000),
    Array.from({ length: 200 }, word).join(' '),
  ]) {
    const work = { lookups: 0 }
    matcher.spans(line, work)
    expect(work.lookups).toBeLessThan(line.length / 50)
  }
})

it('what it remembers of a text is small, however long the text is', () => {
  const long = Array.from({ length: 65_536 }, (_, i) => ((i * 7_919) % 36).toString(36)).join('')
  expect(createTextMatcher([long]).bytes).toBeLessThan(long.length)
})
