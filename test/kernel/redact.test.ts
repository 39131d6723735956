import { describe, expect, it } from 'vitest'
import { CUT_MARK, redactor } from '#server/kernel/redact'

const SECRET = 'p@ss/w?rd+"é"-Tq7'
const redact = redactor([SECRET])
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('a known secret never stands in a line', () => {
  it.each([
    ['as it is', SECRET],
    ['in a URL', encodeURIComponent(SECRET)],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['in base64', base64(SECRET)],
    ['in base64 for URLs', Buffer.from(SECRET).toString('base64url')],
  ])('%s', (_form, text) => {
    expect(redact(`before ${text} after`)).toMatch(/^before \[redacted\]=* after$/)
  })

  it.each(['', 'u', 'me', 'oauth2', 'x-access-token', 'robot'])(
    'as basic authentication of the user «%s»',
    (user) => {
      const header = base64(`${user}:${SECRET}`)
      const shown = redact(`Authorization: Basic ${header}`)
      expect(shown).toMatch(/^Authorization: Basic [\w+/]{0,24}\[redacted\]=*$/)
      // What is left holds the user at most, and the few bits of the secret that share a character with it.
      const left = Buffer.from(/Basic ([^[]*)/.exec(shown)![1]!, 'base64').toString('latin1')
      expect(`${user}:p`.startsWith(left.slice(0, user.length + 1))).toBe(true)
      expect(left.length).toBeLessThanOrEqual(user.length + 2)
    },
  )

  it('in base64 with something after it', () => {
    for (const after of ['\n', 'x', '@host', '\r\nmore'])
      expect(redact(base64(`oauth2:${SECRET}${after}`))).toContain('[redacted]')
  })

  it('line by line when it has several', () => {
    expect(redactor(['first line\nsecond line'])('second line')).toBe('[redacted]')
  })

  it('nor does its beginning where the line was cut', () => {
    for (let length = 4; length <= SECRET.length; length += 1)
      expect(redact(`see ${SECRET.slice(0, length)}${CUT_MARK}`)).toBe(`see [redacted]${CUT_MARK}`)
  })
})

it('other texts, and values as short as a word, stay', () => {
  expect(redactor([SECRET, 'short'])('a short p@ss')).toBe('a short p@ss')
})
