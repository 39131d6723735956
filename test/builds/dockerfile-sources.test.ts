import { describe, expect, it } from 'vitest'
import { dockerfileSources } from '#server/builds/dockerfile-sources'

const read = (dockerfile: string, build_args: Record<string, string> = {}) =>
  dockerfileSources(dockerfile, build_args)
const INSIDE = 'http://127.0.0.1/x'

/** Texts within an instruction, with what ends each: new builders take no line of them for one of their own. */
const HEREDOCS = [
  ['RUN 3<<E', 'E'],
  ['COPY 3<<E /x', 'E'],
  ['RUN a \\\n <<E', 'E'],
  ['RUN <\\\n<E', 'E'],
  ['RUN <<E \\\nE', 'E'],
  ['RUN <<\\ E', ' E'],
  ['RUN <<A <<B\nB\nA', 'B'],
  ['ONBUILD RUN 3<<-E', '\tE'],
  ['RUN <<E\nE\r\rx', 'E'],
] as const

describe('what the engine fetches for a Dockerfile', () => {
  it.each([
    `ADD ${INSIDE} /x`,
    `add ${INSIDE} /x`,
    `  ADD --chown=1:1 --link ${INSIDE} /x`,
    `ADD ["${INSIDE}", "/x"]`,
    `ADD a.txt ${INSIDE} b.txt /x/`,
    `ONBUILD ADD ${INSIDE} /x`,
    `ADD \\\n  ${INSIDE} \\\n  /x`,
    `AD\\\nD ${INSIDE} /x`,
    `ADD # no comment\n\nADD \\\n# a comment\n\n${INSIDE} /x`,
    `ADD "http"://127.0.0.1/x /x`,
    `ADD h\\ttp://127.0.0.1/x /x`,
    `RUN <<E\\\nfoo\nE\\\nADD ${INSIDE} /x`,
    `RUN echo\r\nADD ${INSIDE} /x\r\n`,
    `ADD ["${INSIDE}","/x"] more`,
    `ADD ["a","b"] ${INSIDE} /x`,
    `ADD \\\n\u0085# a comment\n${INSIDE} /x`,
    `ADD \\\n\uFEFF# ${INSIDE} \\\n/x`,
    `ONBUILD \u0085ADD ${INSIDE} /x`,
    `ADD ["a\\"]","${INSIDE}","/x"] more`,
  ])('is found in %j', (text) => expect(read(`FROM a\n${text}\n`).addresses).toContain(INSIDE))

  it.each([
    ['ADD https://example.com/v${V}/x.tgz /x', ['https://example.com/v${V}/x.tgz'], []],
    ['ADD git@forge.example.com:team/app.git /x', ['git@forge.example.com:team/app.git'], []],
    ['ADD ftp://example.com/x /x', ['ftp://example.com/x'], []],
    ['ADD https://$HOST/x /x', [], ['https://$HOST/x']],
    ['ADD http$S://example.com/x /x', [], ['http$S://example.com/x']],
    ['ADD ${URL} /x', [], ['${URL}']],
    ['ADD https://example.com$X/x /x', [], ['https://example.com$X/x']],
    ['ADD 10.0.0.1/a.git /x', [], ['10.0.0.1/a.git']],
    ['ADD 10.0.0.1:8443/a%2e%67it#main /x', [], ['10.0.0.1:8443/a%2e%67it#main']],
    ['ADD ["user@10.0.0.1/a.git?b", "/x"]', [], ['user@10.0.0.1/a.git?b']],
    ['ARG A=t@10.0.0.1:b\nADD me-gi$A /x', [], ['me-gi$A']],
    ['ENV A 10.0.0.1:b\nADD me@$A /x', [], ['me@$A']],
    ['ENV A=0.0.1/a.git#\nADD x 1${A}b.jar /x/', [], ['1${A}b.jar']],
    ['ARG A=git\nADD 10.0.0.1/a.${A%x} /x', [], ['10.0.0.1/a.${A%x}']],
    ['ARG V=1.2\nENV W=$V-a PATH=/a:$PATH\nADD app-${V}.jar lib/$W.tar.gz /x/', [], []],
    ['ADD ./vendor/a.git a.git .gitignore /x/', [], []],
    ['ADD . $APP_HOME', [], []],
    ['ADD target/$NAME.jar app.jar', [], []],
    ['ADD hello.txt /x', [], []],
    ['COPY https://example.com/x /x', [], []],
    ['RUN curl http://127.0.0.1/', [], []],
    ['ADD <<EOF /etc/site.conf\nproxy_pass http://app:3000;\nEOF', [], []],
  ])('%s', (line, addresses, unclear) =>
    expect(read(`FROM a\n${line}`)).toMatchObject({ addresses, unclear }),
  )

  it('are images, of stages and of single steps too, with what arguments make of them', () => {
    const text =
      'ARG BASE=node:22\nARG TAG\nFROM --platform=$BUILDPLATFORM ${BASE} AS build\nFROM registry.example.com/web:${TAG:-1}\nCOPY --from=10.0.0.1:5000/a /a /b\nCOPY --chown=a --from=build /a /b\nRUN --mount=type=bind,from=10.0.0.2:5000/b,target=/x true'
    expect(read(text, { TAG: '2' }).images.sort()).toEqual(
      [
        'node:22',
        'registry.example.com/web:2',
        'registry.example.com/web:1',
        '10.0.0.1:5000/a',
        '10.0.0.2:5000/b',
      ].sort(),
    )
    expect(read('ARG A=$B\nARG B=10.0.0.1:5000\nFROM $A/x').images).toContain('10.0.0.1:5000/x')
    expect(read('ARG A=${A}x\nFROM $A').unclear).toEqual(['$A'])
    expect(read('ARG A=x\nFROM ${A#x}y').unclear).toEqual(['${A#x}y'])
  })
  it('is found behind the other escape character', () =>
    expect(read(`# escape=\`\nFROM a\nADD \`\n${INSIDE} /x`).addresses).toEqual([INSIDE]))
  it.each([
    `# a comment above\n# escape=\`\nADD \\\n${INSIDE} /x`,
    `\n# escape=\`\nADD \\\n${INSIDE} /x`,
    `#\u00a0escape=\`\nADD \\\n${INSIDE} /x`,
  ])('is found although a line only looks like a directive: %j', (text) => {
    expect(read(`${text}\n`).addresses).toContain(INSIDE)
  })
  it.each([
    '--mount=type=bind,From=10.0.0.2:5000/b,target=/x',
    '--mount=type=bind,"from=10.0.0.2:5000/b",target=/x',
    '--MOUNT=type=bind,FROM=10.0.0.2:5000/b,target=/x',
    "--mount='type=bind,from=10.0.0.2:5000/b,target=/x'",
    '--mount=type=bind,target=/x,from=10.0.0.2:5000/b',
    '--mount=type=bind,\\\nfrom=10.0.0.2:5000/b',
  ])('is found in the mount %j', (mount) => {
    expect(read(`FROM a\nRUN ${mount} true`).images).toContain('10.0.0.2:5000/b')
  })
  it.each([
    'RUN --mount="type=bind,target=/a b,from=10.0.0.2:5000/b" true',
    'RUN --mount=type=bind,target=/a\\ b,from=10.0.0.2:5000/b true',
    'RUN --mount=type=bind,target=/a\uFEFF,from=10.0.0.2:5000/b true',
    'RUN \u0085--mount=type=bind,from=10.0.0.2:5000/b,target=/x true',
    'COPY --chown="${X:+a b}1:1" --from=10.0.0.2:5000/b / /',
    'COPY --chown=1\u00e0--from=10.0.0.2:5000/b / /',
    '\u0085COPY --from=10.0.0.2:5000/b / /',
    'COPY --from 10.0.0.2:5000/b / /',
    'COPY --chown=1:1 --from "10.0.0.2:5000/b" / /',
    'RUN --mount type=bind,from=10.0.0.2:5000/b,target=/x true',
    'FROM --platform="${X:+a b}linux/amd64" 10.0.0.2:5000/b',
    'FROM \u008510.0.0.2:5000/b',
  ])('is found behind whatever the builder takes for a flag and for white space: %j', (line) => {
    expect(read(`FROM a\n${line}`).images).toContain('10.0.0.2:5000/b')
  })
  it.each([
    '--mount=type=cache,target=/x,source=d',
    '--mount=src=d,type=cache,target=/x',
    '--mount=type=cache,"SOURCE=d",target=/x',
    "--mount='type=cache,target=/a b,source=d'",
    '--mount=type=ca\\che,sour\\ce=d,target=/x',
    '--mount=type=cache,\\\n# a comment\nsource=d,target=/x',
    '--mount type=cache,source=d,target=/x',
    '--mount=type=$T,source=d,target=/x',
    '--network=none --mount=type=cache,target=/a --mount=type=cache,source=d,target=/x',
  ])('is a part of a cache, in the mount %j', (mount) => {
    for (const run of ['RUN', 'ONBUILD RUN', '\u0085run'])
      expect(read(`FROM a\n${run} ${mount} true`).mounts_part_of_cache).toBe(true)
  })
  it.each([
    'RUN --mount=type=cache,id=a,target=/x,sharing=locked true',
    'RUN --mount=type=cache,target=/x --mount=type=bind,source=src,target=/y true',
    'RUN --mount=type=secret,id=a,source=b --mount=type=cache,target=/x true',
    'COPY --from=cache source=d /x',
  ])('is no part of a cache in %j', (line) =>
    expect(read(`FROM a\n${line}`).mounts_part_of_cache).toBe(false),
  )
  it('is found in a flag that is escaped with a backslash, whatever else escapes', () => {
    const flag = '--mount=type=bind,fr\\om=10.0.0.2:5000/b,target=/x'
    expect(read(`# escape=\`\nFROM a\nRUN ${flag} true`).images).toContain('10.0.0.2:5000/b')
  })
  it('is not taken for a variable of another name', () =>
    expect(read('ARG A\u00e9=10.0.0.1:5000/x\nFROM $A\u00e9').unclear).toEqual(['$A\u00e9']))
  it('are images of the platform, whose variables a builder sets by itself', () => {
    const { arch } = process
    expect(read('FROM a.internal:5000/$TARGETOS').images).toContain('a.internal:5000/linux')
    const platform = `linux/${arch === 'x64' ? 'amd64' : arch}`
    expect(read('FROM x/${BUILDPLATFORM:-b}').images.sort()).toEqual(['x/b', `x/${platform}`])
    expect(read('ARG TARGETARCH=c\nFROM x/$TARGETARCH').images).toContain('x/c')
  })
  it('is read with each variable ending where it ends for the builder', () => {
    const arg = 'ARG H=10.0.0.1:5000/\n'
    for (const from of [
      'FROM "$H"x',
      "FROM $H'x'",
      'FROM $H\\x',
      'ARG V=$H\nFROM ${V}x',
      'ARG V="$H"x\nFROM $V',
    ])
      expect(read(`${arg}${from}`).images, from).toContain('10.0.0.1:5000/x')
  })
  it.each([
    '["htt\\"p://10.0.0.1/x\\"", "/o"]',
    '["http\\u0027://\\u002710.0.0.1/x","/o"]',
    '["ht\\\\tp://10.0.0.1/x", "/o"]',
  ])('is an address in a list too, whose words the builder expands: %s', (list) =>
    expect(read(`FROM a\nADD ${list}`).addresses).toContain('http://10.0.0.1/x'),
  )
  it('is a stage only where one of that name came before', () => {
    const images = (text: string) => read(text).images
    expect(images('FROM a AS cafe\nFROM cafe\nCOPY --from=CAFE / /\nCOPY --from=0 / /')).toEqual(['a'])
    expect(images('FROM cafe\nFROM scratch AS cafe')).toEqual(['cafe', 'scratch'])
    expect(images('FROM cafe AS cafe')).toEqual(['cafe'])
    expect(images('FROM a\nFROM 0\nCOPY --from=7 / /')).toEqual(['a', '0', '7'])
    expect(images('FROM a AS 10.0.0.1:5000/x\nFROM 10.0.0.1:5000/x')).toEqual(['a', '10.0.0.1:5000/x'])
    // What only the parser, or only a line by itself, takes for an instruction is none.
    for (const fake of ['# \rFROM a AS cafe', 'RUN true \\\\\nFROM a AS cafe', 'RUN \\\n\nFROM a AS cafe'])
      expect(images(`FROM b\n${fake}\nRUN a\nRUN b\nFROM cafe\nFROM c AS cafe`), fake).toContain('cafe')
    expect(images('FROM a \\\n  AS cafe\n# b\n\nFROM cafe')).toEqual(['a'])
    for (const [begin, end] of HEREDOCS)
      expect(images(`FROM b\n${begin}\nx\nFROM a AS cafe\n${end}\nFROM cafe`), begin).toContain('cafe')
    for (const open of ['RUN <<E', 'COPY <<-"E" /x', 'RUN a <<E b'])
      expect(images(`FROM b\n${open}\ncat <<X\nX\nE\nFROM a AS cafe\nFROM cafe`), open).toEqual(['b', 'a'])
    const hidden = 'RUN <<E\nFROM a AS cafe\nE\nFROM cafe'
    expect(images(`FROM b\n${hidden}`)).toContain('cafe')
    expect(images(`FROM b\n${hidden}\n${'#\n'.repeat(40_000)}`)).toContain('cafe')
  })
  it('is told of the text without cache mounts too, which is what a builder gets that knows none', () => {
    const added = read(`FROM a\nRUN \`\n--mount=type=cache ADD ${INSIDE} /x`)
    expect(added.addresses).toEqual([INSIDE])
    const copied = '--mount=type=cache COPY --from=10.0.0.1:5000/x / /'
    expect(read(`# escape=\`\nFROM a\nRUN \\\n${copied}`).images).toContain('10.0.0.1:5000/x')
    // The line of the mount is empty then, and the next one goes on with RUN.
    for (const end of ['', '  ', '\t'])
      expect(read(`FROM b\nRUN \\\n--mount=type=cache${end}\nFROM a AS cafe\nFROM cafe`).images).toContain(
        'cafe',
      )
    expect(read('FROM a AS cafe\nRUN --mount=type=cache,target=/x true\nFROM cafe').images).toEqual(['a'])
  })
  it.each([
    '# syntax=evil/x',
    '#syntax = evil/x',
    '#\fsyntax=evil/x',
    '#\rsyntax=evil/x',
    '\uFEFF# syntax=evil/x',
    '# escape=\\\n# SYNTAX=evil/x a b',
  ])('or whatever another frontend likes, named by %j', (line) => {
    expect(read(`${line}\nFROM a`).frontend).toBe('evil/x')
  })
  it.each(['// syntax=evil/x\nFROM a', '{"syntax":"evil/x"}', '  {"syntax":"evil/x"}'])(
    'is not asked for in %j, which is no Dockerfile',
    (text) => expect(() => read(text)).toThrow(RangeError),
  )
  it('is told from a text in which the engine can read no other directive', () => {
    expect(read('#!/bin/sh\n# syntax=evil/x\nFROM a').text).toBe('#:!/bin/sh\n#: syntax=evil/x\nFROM a')
    expect(read('# b\n  # syntax=evil/x\n\n# escape=`\nFROM a').text).toBe(
      '#: b\n#: syntax=evil/x\n\n#: escape=`\nFROM a',
    )
    expect(read('# escape = `\n#syntax=docker/dockerfile:1 \r\nFROM a').text).toBe(
      '# syntax=docker/dockerfile:1\n# escape=`\nFROM a',
    )
    expect(read('FROM a\n# syntax=evil/x').text).toBe('FROM a\n# syntax=evil/x')
  })
  it('is not told where a long variable of the app is put in hundreds of times, which would take seconds', () => {
    const words = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((end) => `${'$A'.repeat(240)}${end}`)
    const before = process.cpuUsage()
    const told = dockerfileSources(words.map((word) => `FROM ${word}\n`).join(''), {
      A: '$B'.repeat(50_000),
      B: 'c',
    })
    const { user, system } = process.cpuUsage(before)
    expect(told.unclear).toEqual(words)
    expect((user + system) / 1000).toBeLessThan(400)
  })
  it('and what is too involved to be told is refused, not followed for ever', () => {
    expect(read('ARG A=$A$A\nFROM $A$A$A').unclear).toEqual(['$A$A$A'])
    expect(read(`FROM a\n${'RUN a \\\n'.repeat(40_000)}true`).unclear).toEqual([
      'a file of so many continued lines',
    ])
    expect(read(`FROM a\n${'RUN a \\\n'.repeat(300)}true`).unclear).toEqual([])
  })
})
