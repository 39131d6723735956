import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { CUT_MARK, matcherOf, redactor, redactorSoon } from '#server/kernel/redact'
import { randomOf } from '#test/support/random'

const SECRET = 'p@ss/w?rd+"é"-Tq7'
const { below } = randomOf(7)
/** Longer than what is known of a secret in one piece. */
const LONG = Array.from({ length: 700 }, () => below(36).toString(36)).join('')
const FILLER = 'x'.repeat(1_000)
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

  it.each([
    ['JSON of Go', String.raw`p\u0026ss\u003cw\u003e/é+'q\" !(x)*~z`],
    ['JSON of Python', String.raw`p&ss<w>/\u00e9+'q\" !(x)*~z`],
    ['JSON of PHP', String.raw`p&ss<w>\/\u00e9+'q\" !(x)*~z`],
    ['JSON of .NET', String.raw`p\u0026ss\u003Cw\u003E/\u00E9\u002B\u0027q\u0022 !(x)*~z`],
    ['an address of Python', 'p%26ss%3Cw%3E/%C3%A9%2B%27q%22%20%21%28x%29%2A~z'],
    ['an address of PHP', 'p%26ss%3Cw%3E%2F%C3%A9%2B%27q%22%20%21%28x%29%2A~z'],
    ['an address in lower case', 'p%26ss%3cw%3e%2f%c3%a9%2b%27q%22%20%21%28x%29%2a~z'],
    ['a form', 'p%26ss%3Cw%3E%2F%C3%A9%2B%27q%22+%21%28x%29*%7Ez'],
  ])('as it is written in %s', (_form, text) => {
    expect(redactor([`p&ss<w>/é+'q" !(x)*~z`])(`{"url":"${text}"}`)).toBe('{"url":"[redacted]"}')
  })

  it.each([
    [
      'an address',
      'postgres://shop:s3cret%2Fpass@db.example.com:5432/shop?sslmode=require&pool=5',
      's3cret%2Fpass',
    ],
    ['an address, decoded', 'postgres://shop:s3cret%2Fpass@db.example.com/shop', 's3cret/pass'],
    ['an address without a user', 'redis://:s3cretpass@cache:6379', 's3cretpass'],
    ['settings of a driver', 'Server=db;User Id=shop;Password=s3cretpass;Encrypt=true', 's3cretpass'],
    ['settings of libpq', `host=db user=shop password='s3cret pass'`, 's3cret pass'],
    ['a file of variables', 'LOG_LEVEL=debug\nDB_PASSWORD=s3cretpass\n', 's3cretpass'],
    ['a document', '{"type":"account","keys":[{"client_secret":"s3cretpass"}]}', 's3cretpass'],
    ['a header', 'Bearer s3cretpass', 's3cretpass'],
    ['basic authentication', `Basic ${base64('shop:s3cretpass')}`, 's3cretpass'],
  ])('nor the password that is part of %s', (_what, secret, password) => {
    const mask = redactor([secret])
    expect(mask(`password: ${password}, user: shop`)).toBe('password: [redacted], user: shop')
    expect(mask('Server=db LOG_LEVEL account require')).toBe('Server=db LOG_LEVEL account require')
  })

  it('line by line when it has several', () => {
    expect(redactor(['first line\nsecond line'])('second line')).toBe('[redacted]')
  })

  it('nor does any part of it where the line was cut, wherever the cut is', () => {
    for (const secret of [SECRET, LONG]) {
      for (let length = 1; length <= secret.length; length += 7) {
        const shown = redactor([secret])(`${FILLER}${secret.slice(0, length)}${CUT_MARK}`)
        expect(shown).toMatch(/^x+(\[redacted\])?x* … \[the rest of the line was not kept\]$/)
      }
    }
  })
})

describe('a program that prints guesses', () => {
  const longer = redactor([SECRET, LONG])
  const wrong = (text: string) => `${text.slice(0, -1)}~`

  it('learns nothing from a line that is cut after the beginning of a secret', () => {
    for (const secret of [SECRET, LONG])
      for (let length = 1; length < Math.min(secret.length, 250); length += 1) {
        const guess = secret.slice(0, length)
        expect(longer(FILLER + guess + CUT_MARK)).toBe(longer(FILLER + wrong(guess) + CUT_MARK))
      }
  })

  it('sees every guess that is not the whole secret as it printed it', () => {
    for (let length = 1; length < SECRET.length; length += 1)
      expect(longer(`see ${SECRET.slice(0, length)}`)).toBe(`see ${SECRET.slice(0, length)}`)
  })
})

it('a cut line shows all but its last 128 characters, whatever they are, however often it is masked', () => {
  const shown = `${FILLER.slice(0, -128)} … [the rest of the line was not kept]`
  for (const mask of [redact, redactor([])]) {
    expect(mask(`${FILLER}${CUT_MARK}`)).toBe(shown)
    expect(mask(mask(`${FILLER}${CUT_MARK}`))).toBe(shown)
  }
})

it('other texts, and values as short as a word, stay', () => {
  expect(redactor([SECRET, 'short'])('a short p@ss')).toBe('a short p@ss')
})

it('what is known of some secrets is worked out once for all who ask for them', () => {
  const first = matcherOf([SECRET, LONG])
  expect(matcherOf([SECRET, LONG])).toBe(first)
  expect(matcherOf([SECRET])).not.toBe(first)
  expect(matcherOf([`${SECRET},${LONG}`])).not.toBe(first)
})

describe('a megabyte of secrets in short lines', () => {
  const linesFrom = (seed: number) =>
    Array.from({ length: 100_000 }, (_, at) => (at * 7919 + seed).toString(36).padStart(9, 'k')).join('\n')

  it('is known within a second or two, to the last line, and as a whole in other forms', () => {
    const secret = linesFrom(12_345_678)
    const started = process.cpuUsage()
    const mask = redactor([secret])
    expect(process.cpuUsage(started).user).toBeLessThan(2_000_000)
    expect(mask(`see ${secret.slice(-9)}`)).toBe('see [redacted]')
    expect(mask(base64(secret))).toBe('[redacted]')
    expect(mask(base64(secret.slice(0, 9)))).toMatch(/^\[redacted\]/)
  })
  it('is worked out with others served in between, once for all who wait for it', async () => {
    let turns = 0
    let is_done = false
    const secret = linesFrom(87_654_321)
    const waiting = Promise.all([redactorSoon([secret]), redactorSoon([secret])]).then((both) => {
      is_done = true
      return both
    })
    while (!is_done) {
      await setImmediate()
      turns += 1
    }
    expect(turns).toBeGreaterThan(100)
    const [first] = await waiting
    expect(first(secret.slice(0, 9))).toBe('[redacted]')
    expect(matcherOf([secret])).toBe(matcherOf([secret]))
  })
})
