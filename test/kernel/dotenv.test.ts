import { parse } from 'dotenv'
import { describe, expect, it } from 'vitest'
import { readDotenv, renderEntry } from '#server/kernel/dotenv'

const valuesOf = (text: string) =>
  Object.fromEntries(readDotenv(text).entries.map(({ key, value }) => [key, value]))

/** One line or more for each thing that the package's own tests are about. */
const CASES: Record<string, string> = {
  'a plain value': 'PLAIN=value',
  'a line after an empty one and a comment': 'A=1\n\n# nothing here\nB=2',
  'empty values, with and without quotes': `A=\nB=''\nC=""\nD=\`\``,
  'quotes of three kinds': `A='one'\nB="two"\nC=\`three\``,
  'spaces inside of quotes': `A='   one   '\nB="   two   "\nC=\`   three   \``,
  'quotes inside of other quotes': `A='say "so"'\nB="it's"\nC='tick \`t\`'\nD="tick \`t\`"\nE=\`"both" 'kinds'\``,
  'brackets right behind a quote': `A="{ port: $PORT}"\nB='{ port: $PORT}'`,
  'line breaks that are written out, only in double quotes': String.raw`A="one\ntwo"
B=one\ntwo
C='one\ntwo'
D="one\rtwo"`,
  'comments behind values': `A=one two # three #four\nB='one # two' # three\nC="one # two" # three\nD=\`one # two\` # three`,
  'a number sign without a space before it': 'A=one#two three',
  'equal signs in a value': 'A=one==two=',
  'quotes that belong to a value': `A={"one": "two"}\nB='{"one": "two"}'\nC=\`{"one": "it's"}\``,
  'spaces around values and names': 'A=    one two\n    B = three   ',
  'export before a name': 'export A=one\n  export B="two"',
  'an address and a mail address': 'A=https://ada@example.com:1234/path?x=1&y=2\nB=ada+b@example.com',
  'a colon instead of the equal sign': 'A: one\nB: "two three"',
  'values of several lines': `A="one\ntwo\n\n# three\nfour"\nB='one\ntwo = 2\n'\nC=\`"one"\n'two'\`\nD=after`,
  'a key in its armour':
    'A="-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\nLgGJQwu9WqyzHKZ6==\n-----END PUBLIC KEY-----"\nB=1',
  'quotes with text behind them': `A="one" two\nB='one'two`,
  'escaped quotes': String.raw`A="one \"two\" three"
B='one \'two\' three'`,
  'line ends of other systems': 'A=1\r\nB="2\r\n3"\rC=4\r\n',
  'a text without anything': '',
  'comments only': '# one\n   # two',
}

describe('a dotenv text', () => {
  it.each(Object.entries(CASES))('with %s is read as the package dotenv reads it', (_name, text) => {
    expect(readDotenv(text).bad).toEqual([])
    expect(valuesOf(text)).toEqual(parse(text))
  })
  it('with a mark of its byte order begins with its first name', () => {
    expect(valuesOf('\uFEFFA=1')).toEqual({ A: '1' })
  })
  it('tells the line of each assignment, also behind values of several lines', () => {
    expect(readDotenv('# 1\nA="2\n3\n4"\n\nB=6').entries.map(({ key, line }) => [key, line])).toEqual([
      ['A', 2],
      ['B', 6],
    ])
  })
  it.each([
    ['no assignment', 'A=1\njust words\nB=2', 2, /no assignment/],
    ['a name alone', 'A', 1, /no assignment/],
    ['a name with a hyphen', 'MY-KEY=1', 1, /other characters/],
    ['a name that begins with a digit', 'A=1\n1B=2', 2, /digit first/],
    ['a quote that is never closed', 'A=1\nB="two\nC=3', 2, /never closed/],
    ['a name for the second time', 'A=1\nB=2\nA=3', 3, /second time, after line 1/],
  ])('with %s names the line, where the package would pass over it', (_name, text, line, message) => {
    expect(readDotenv(text).bad).toEqual([{ line, message: expect.stringMatching(message) }])
  })
  it('names every bad line at once, and quotes no value', () => {
    const { bad } = readDotenv('one secret\nA=1\ntwo secret\n')
    expect(bad.map(({ line }) => line)).toEqual([1, 3])
    expect(JSON.stringify(bad)).not.toContain('secret')
  })
  it('of a megabyte of escaped quotes and backslashes names the line of the one that stays open', () => {
    const text = `A='${String.raw`\'`.repeat(300_000)}\nB="${'\\'.repeat(300_000)}`
    expect(readDotenv(text).bad.map(({ line }) => line)).toEqual([2])
  })
})

describe('an assignment that is written', () => {
  it.each([
    '',
    'plain',
    'with spaces and # a sign',
    "it's",
    'say "so"',
    'it\'s "both"',
    'one\ntwo\n',
    '-----BEGIN KEY-----\nabc==\n-----END KEY-----\n',
    String.raw`back\slash`,
    String.raw`ends with \ `.trim(),
    'tab\there',
    '$HOME ${X} `date`',
    '${{ project.KEY }}',
    'carriage\r\nreturn',
    'ümlaut 🚢',
    '  spaced  ',
    '{"json": "it is"}',
  ])('reads back as the very same value: %j', (value) => {
    const written = renderEntry('KEY', value)
    const lost = written.startsWith('#')
    expect(parse(`A=1\n${written}\nZ=1`)).toEqual(lost ? { A: '1', Z: '1' } : { A: '1', KEY: value, Z: '1' })
    expect(lost).toBe(value.endsWith('\\'))
  })
  it('is a comment where the format has no way to write it', () => {
    expect(renderEntry('KEY', `'"\``)).toMatch(/^# KEY holds characters/)
  })
})
