import { describe, expect, it } from 'vitest'
import { PatternError, readCheapPattern, readPattern, samplesOf } from '#server/redirects/pattern'

describe('a pattern', () => {
  it.each([
    ['/blog/(\\d+)/([^/]+)', 2],
    ['/(.*)', 1],
    ['^/old/(.*)$', 1],
    ['/(a|b)/c?', 1],
    ['/v(?:1|2)/x', 0],
    ['/p\\.html', 0],
    ['/[a-z0-9-]{2,8}', 0],
    ['/a/(.*)/b/(.*)', 2],
    ['/\\w+/\\d{4}', 0],
    ['/(.*)/x/(.*)/?', 2],
    ['/(en|de|fr|es)/(?:blog|news)(/[^/]+)?', 2],
    ['/[^a-f]+', 0],
  ])('is read: %s', (text, groups) => {
    expect(readCheapPattern(text).groups).toBe(groups)
  })
  it.each([
    ['a repeated group with a repetition inside', '/(a+)+', 'repeats a group'],
    ['a repeated group of alternatives', '/(a|a)*b', 'repeats a group'],
    ['many ambiguous repetitions', '/.*a.*b.*c', 'very many attempts'],
    ['many overlapping optional parts', `/${'a?'.repeat(30)}${'a'.repeat(30)}`, 'very many attempts'],
    [
      'fewer of them, on an address of their length',
      `/${'a?'.repeat(12)}${'a'.repeat(12)}`,
      'very many attempts',
    ],
    ['many groups of equal alternatives', `/${'(?:a|a)'.repeat(30)}b`, 'very many attempts'],
    ['two repetitions side by side', '/a+a+a+b', 'very many attempts'],
    ['a look-ahead', '/(?=a)b', 'kind'],
    ['a look-behind', '/(?<=a)b', 'kind'],
    ['a named group', '/(?<n>a)', 'kind'],
    ['an option', '/(?i)a', 'kind'],
    ['a verb', '/(*COMMIT)a', 'kind'],
    ['a back-reference', '/(a)\\1', 'escape'],
    ['an escape of the edge alone', '/\\Qa.b\\E', 'escape'],
    ['a word boundary', '/a\\b', 'escape'],
    ['a lazy repetition', '/.*?a', 'repeats a repetition'],
    ['a possessive repetition', '/.*+a', 'repeats a repetition'],
    ['a POSIX class', '/[[:alpha:]]', 'brackets'],
    ['an empty class', '/[]a]', 'brackets'],
    ['an open group', '/(a', 'not closed'],
    ['a closed group that is not open', '/a)', 'not open'],
    ['an open class', '/[a', 'brackets'],
    ['a range backwards', '/[z-a]', 'range'],
    ['a brace without meaning', '/a{,3}', 'special character'],
    ['an anchor in the middle', '/a$b', 'special character'],
    ['too many repeats', '/a{1,1000}', '64'],
    ['ten groups', `/${'(a)'.repeat(10)}`, 'nine'],
    ['a character that is not ASCII', '/ä', 'characters'],
    ['a backslash at the end', '/a\\', 'backslash'],
  ])('is refused with a reason: %s', (_what, text, reason) => {
    expect(() => readCheapPattern(text)).toThrow(PatternError)
    expect(() => readCheapPattern(text)).toThrow(reason)
  })
  it.each(['/blog/(\\d+)/([^/]+)', '/(.*)', '/(a|b)/c?', '/[a-z0-9-]{2,8}', '/v(?:1|2)/x', '/a\\.b'])(
    'gives texts that it matches: %s',
    (text) => {
      const samples = samplesOf(readPattern(text))
      expect(samples.length).toBeGreaterThan(0)
      expect(samples.filter((sample) => !new RegExp(`^(?:${text})$`, 's').test(sample))).toEqual([])
    },
  )
  it('that is accepted needs a bounded number of attempts for the worst path', () => {
    const worst = [`/${'a?'.repeat(10)}.*c`, '/a/(.*)/b/(.*)', '/.*a.*b', '/(?:a|b)?(?:a|b)?.*c']
    const path = `/${'a/b'.repeat(600)}`
    const started = process.cpuUsage()
    for (const text of worst) {
      readCheapPattern(text)
      new RegExp(`^(?:${text})$`, 's').test(path)
    }
    expect(process.cpuUsage(started).user).toBeLessThan(2_000_000)
  })
})
