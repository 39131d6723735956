import { parse } from 'dotenv'
import { describe, expect, it } from 'vitest'
import { parseDotenv, readDotenv, renderEntry } from '#server/kernel/dotenv'
import { DOTENV_TEXTS } from '#test/support/dotenv-texts'

const valuesOf = (text: string) =>
  Object.fromEntries(readDotenv(text).entries.map(({ key, value }) => [key, value]))

describe('a dotenv text', () => {
  it.each(Object.entries(DOTENV_TEXTS))('with %s is read as the package dotenv reads it', (_name, text) => {
    expect(readDotenv(text).bad).toEqual([])
    expect(valuesOf(text)).toEqual(parse(text))
  })
  it.each([
    ...Object.entries(DOTENV_TEXTS),
    ['what is passed over', 'just words\nA=1\n=x\nB\nC: 2\nMY-KEY.a=3\n1B=4\n'],
    ['names that come again', "A=1\nA='2'\nB=3\nA=4 # five"],
    ['a quote that is never closed', "A=\"one\nB=two\nC='x' y"],
    ['a value of several lines', 'A="one\n\n\ntwo"\n\n\nexport B=`three\n`\n'],
    ['nothing', ''],
  ])('with %s has the variables that the package reads', (_name, text) => {
    expect(parseDotenv(text)).toEqual(parse(text))
  })
  it('of a megabyte of empty lines, of blanks or of open values is read at once', () => {
    for (const part of ['\n', ' \n', '\t', 'A\n', '\u2028', 'A=\n', '"\n'])
      expect(parseDotenv(`${part.repeat(1_000_000 / part.length)}\nLAST=1`)).toMatchObject({ LAST: '1' })
  })
  it('of a megabyte of lines that only some take for lines is read at once', () => {
    for (const part of ["'x\u2028", '\u2028 ', '# \u2029']) {
      const value = `x${part.repeat(300_000)}`
      expect(parseDotenv(`A=${value}\nLAST=1`)).toMatchObject({ A: value.split('#')[0]!.trim(), LAST: '1' })
      expect(readDotenv(`A=${value}\nLAST=1`).entries).toHaveLength(2)
    }
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
  it('is left unread behind more lines than anybody takes', () => {
    const text = Array.from({ length: 100_000 }, (_, at) => `K${at}=v`).join('\n')
    expect(readDotenv(text, 2000).entries).toHaveLength(2001)
    expect(readDotenv('no assignment\n'.repeat(100_000), 2000).bad).toHaveLength(2001)
  })
})
