import { describe, expect, it } from 'vitest'
import { dockerfileSources } from '#server/builds/dockerfile-sources'
import { fuzz, type Random } from '#test/support/random'

/** Seeds that once found something. */
const SEEDS = [1, 7, 20_221]
const INSIDE = 'http://127.0.0.1/x'
const IMAGE = '10.0.0.1:5000/x'

/** The same word as the engine reads it, written otherwise. */
const anyCase = (random: Random, word: string) =>
  [...word].map((letter) => (random.some(0.5) ? letter.toLowerCase() : letter.toUpperCase())).join('')
/** White space between two words, which may be a continued line with comments in it. */
const gap = (random: Random, escape: string): string =>
  random.one([
    ' ',
    '\t',
    '   ',
    ` ${escape}\n`,
    ` ${escape}\r\n  `,
    ` ${escape}\n# a comment\n`,
    ` ${escape}\n\n`,
    ` ${escape}  \n`,
  ])

/** A Dockerfile that makes the engine fetch, and what has to be found in it. */
function hostile(random: Random): { text: string; kind: 'address' | 'image' | 'frontend' } {
  const escape = random.one(['\\', '\\', '`'])
  const space = () => gap(random, escape)
  const head = random.one([
    '',
    '# a comment\n# escape=|\n',
    '\n# escape=|\n',
    '# a\n#\fescape=|\n',
    '#!/bin/sh\n#escape=|\n',
    '#\u00a0escape=|\n',
  ])
  const other = escape === '`' ? '\\' : '`'
  const directives = escape === '`' ? `# escape=\`\n${head.replace('|', other)}` : head.replace('|', other)
  // Where no builder goes on with the line above, what stands behind a mount that is left out begins an instruction.
  const left_out = `RUN ${other}\n--mount=type=cache,target=/x `
  const prefix = random.one(['', '  ', '\t', `${anyCase(random, 'onbuild')}${space()}`, left_out])
  const noise = random.one(['', 'RUN true\n', `RUN a ${escape}\n b\n`, 'LABEL a="b c"\n', 'ENV A=b\n'])
  const kind = random.one(['address', 'image', 'frontend'] as const)
  if (kind === 'frontend') {
    const blank = () => random.one(['', ' ', '\t', '\f', '\r', '  '])
    const name = `#${blank()}${anyCase(random, 'syntax')}${blank()}=${blank()}evil/x`
    return {
      kind,
      text: `${random.one(['', '# escape=\\\n', '#check=skip=all\n'])}${name}\nFROM a\n${noise}`,
    }
  }
  const add = anyCase(random, 'add')
  const run = anyCase(random, 'run')
  const from = random.one(['from', 'From', 'FROM'])
  const line =
    kind === 'address'
      ? random.one([
          `${add}${space()}${INSIDE}${space()}/x`,
          `${add}${space()}--chown=1:1${space()}${INSIDE}${space()}/x`,
          `${add} ["${INSIDE}", "/x"]`,
          `${add} ["${INSIDE.replace('//', '/\\"/\\"')}", "/x"]`,
          `${add}${space()}a${space()}"${INSIDE}"${space()}/x/`,
          `ARG A=t@10.0.0.1:x\n${add}${space()}me-gi${random.one(['$A', '"$A"', '${A:-b}'])}${space()}/x`,
          `${random.one(['ENV A=0.0.1', 'ENV A 0.0.1', 'ARG A=0.0.1'])}\n${add}${space()}"10.\${A}/a"${random.one(['.git', '.git#b', '.%67it'])}${space()}/x`,
        ])
      : random.one([
          `COPY${space()}--from=${IMAGE}${space()}/a${space()}/b`,
          `${run}${space()}--mount=type=bind,${from}=${IMAGE},target=/x${space()}true`,
          `${run}${space()}--mount=type=bind,"${from}=${IMAGE}",target=/x${space()}true`,
          `${run}${space()}--mount="type=bind,target=/a b,${from}=${IMAGE}"${space()}true`,
          `COPY${space()}--chown="a b"${space()}--from=${IMAGE}${space()}/a${space()}/b`,
          `${anyCase(random, 'from')}${space()}--platform=linux/amd64${space()}${IMAGE}`,
          `ARG H=10.0.0.1:5000/\nARG V=$H\nFROM${space()}${random.one(['"$V"x', '${V}x', "$H'x'", '${N:-$V}x'])}`,
        ])
  return { kind, text: `${directives}FROM a\n${noise}${prefix}${line}\n${noise}` }
}

function check(random: Random, seed: string): void {
  const { text, kind } = hostile(random)
  const found = dockerfileSources(text, {})
  const label = `${seed}: ${JSON.stringify(text)}`
  const seen = {
    address: found.addresses.includes(INSIDE),
    image: found.images.includes(IMAGE),
    frontend: found.frontend === 'evil/x',
  }
  expect(seen[kind] || found.unclear.length > 0, label).toBe(true)
  // What is built is read as it was read here, as often as one likes, and has the user's lines.
  const again = dockerfileSources(found.text, {})
  expect({ ...again, text: found.text }, label).toEqual(found)
  expect(found.text.split('\n').length, label).toBe(text.split('\n').length)
  const above = found.text.split('\n').slice(0, found.text.split('\n').indexOf('FROM a'))
  for (const one of above.filter((comment) => comment.trimStart().startsWith('#')))
    expect(one, label).toMatch(/^(?:#:|# syntax=evil\/x$|# escape=`$)/)
}

describe('whatever a Dockerfile is written like', () => {
  it('what it makes the engine fetch is found, and no directive is left that was not read', () => {
    return fuzz(SEEDS, 15, check)
  }, 600_000)
})
