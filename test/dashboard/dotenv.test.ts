import { parse } from 'dotenv'
import { describe, expect, it } from 'vitest'
import { pastedVariables, pasteFault, readDotenv } from '@/lib/dotenv'
import { DOTENV_TEXTS } from '#test/support/dotenv-texts'

describe('a dotenv text in the dashboard', () => {
  it.each(Object.keys(DOTENV_TEXTS))('is read as the server reads it: %s', (name) => {
    const text = DOTENV_TEXTS[name]!
    const { entries, unread } = readDotenv(text)
    expect(Object.fromEntries(entries.map(({ key, value }) => [key, value]))).toEqual(parse(text))
    expect(unread).toBeUndefined()
  })
  it('keeps its order, and the remarks that stand right above a variable', () => {
    expect(readDotenv('# of the shop\n\n# where mails\n## come from\nB=2\nA=1 # behind\n').entries).toEqual([
      { key: 'B', value: '2', comment: 'where mails come from' },
      { key: 'A', value: '1', comment: null },
    ])
  })
})

describe('a paste', () => {
  const keysOf = (text: string, cell: 'key' | 'value') => pastedVariables(text, cell)?.map(({ key }) => key)
  it('of a .env text spreads, into whichever cell it goes', () => {
    const text = '# mode\nMODE=live\nexport KEY="one\ntwo"\n\nC=3\n'
    for (const cell of ['key', 'value'] as const) expect(keysOf(text, cell)).toEqual(['MODE', 'KEY', 'C'])
  })
  it('of one assignment is one for a key, and for a value only where nothing else can be meant', () => {
    expect(keysOf('MODE=live', 'key')).toEqual(['MODE'])
    expect(keysOf('sslmode=off\n', 'value')).toBeUndefined()
    expect(keysOf('export MODE=live', 'value')).toEqual(['MODE'])
    expect(keysOf('CERT="-----BEGIN-----\nabc=\n-----END-----"', 'value')).toEqual(['CERT'])
  })
  it('of many lines into a key says which of them cannot be read, and repeats nothing of it', () => {
    const sentence = 'Nothing was pasted: line 4 is neither NAME=value nor a comment.'
    expect(pasteFault('# mode\nA="one\ntwo"\nBAD KEY=s3cret\nB=2\nalso bad')).toBe(sentence)
    for (const text of ['BAD KEY\n', 'A_KEY', 'A=1\n# and\nB=2']) expect(pasteFault(text)).toBeUndefined()
  })
  it.each([
    ['a single value', 'sk_test_4242'],
    ['an address with a query', 'https://example.com/?a=1&b=2'],
    ['a quoted value of several lines', '"one\nTWO=2\nthree"'],
    ['a key in its armour', '-----BEGIN KEY-----\nMIIBIjANBgkqh\nLgGJQwu9WqyzHKZ6==\n-----END KEY-----\n'],
    ['a JSON text', '{\n  "a": "b=c"\n}'],
    ['lines of which one is no assignment', 'A=1\nand more\nB=2'],
    ['nothing', ''],
  ])('of %s stays a value', (_, text) => {
    for (const cell of ['key', 'value'] as const) expect(pastedVariables(text, cell)).toBeUndefined()
  })
})
