import { describe, expect, it } from 'vitest'
import { dockerfileSources } from '#server/builds/dockerfile-sources'

const isOvergrown = (lines: readonly string[], build_args: Record<string, string> = {}) =>
  dockerfileSources(['FROM a', ...lines].join('\n'), build_args).is_overgrown

/** Each variable names the one before it eight times. */
const eightfold = (form: (name: string, value: string) => string) =>
  Array.from({ length: 7 }, (_, at) => form(`A${at + 1}`, `$A${at}`.repeat(8)))
const LONG = 'x'.repeat(60_000)
/** Each stage begins with the one above it, and names it once more. */
const stages = (line: (before: string, at: number) => string, base = 's') => [
  'FROM a AS s0',
  ...Array.from({ length: 40 }, (_, at) => `FROM ${base}${at} AS s${at + 1}\n${line(`s${at}`, at)}`),
]

describe('a Dockerfile whose variables the builder would work on for minutes is told', () => {
  it.each([
    ['ENV', ['ENV A0=xxxxxxxx', ...eightfold((name, value) => `ENV ${name}=${value}`)]],
    ['the old form of ENV', ['ENV A0 xxxxxxxx', ...eightfold((name, value) => `env ${name} ${value}`)]],
    ['ARG', ['ARG A0=xxxxxxxx', ...eightfold((name, value) => `ARG ${name}="${value}"`)]],
    ['quotes', ['ENV A0=xxxxxxxx', ...eightfold((name, value) => `ENV ${name}="B= ${value} C="`)]],
    ['escaped space', ['ENV A0=xxxxxxxx', ...eightfold((name, value) => `ENV ${name}=a\\ b=${value}`)]],
    ['continued lines', ['ENV A0=xxxxxxxx', ...eightfold((name, value) => `ENV \\\n  ${name}=\\\n${value}`)]],
    ['a later build', ['ARG A0=xxxxxxxx', ...eightfold((name, value) => `ONBUILD ARG ${name}=${value}`)]],
    ['fallbacks', ['ARG A0=xxxxxxxx', ...eightfold((name, value) => `ARG ${name}=\${NONE:-${value}}`)]],
    ['replacements', [`ARG A=${'x'.repeat(200)}`, 'LABEL l=${A//x/${A//x/$A}}']],
    ['replacements beyond reading', ['ARG a=xx', `LABEL l=${'${a//x/'.repeat(8000)}`]],
    ['many labels', [`ARG A=${LONG}`, ...Array.from({ length: 20 }, (_, at) => `LABEL l${at}=$A`)]],
    ['a literal word', [`LABEL l=${LONG}${LONG}${LONG}`]],
    ['many variables', Array.from({ length: 2000 }, (_, at) => `ENV k${at}=v`)],
    [
      'many lines that look them up',
      [`ENV ${Array.from({ length: 800 }, (_, at) => `k${at}=v`).join(' ')}`, ...Array(1000).fill('USER a')],
    ],
    ['a path', [`ARG A=${LONG}`, 'WORKDIR /$A/$A/$A']],
    ['a flag', [`RUN --mount=type=bind,target=/${LONG} true`]],
    [
      'a flag of continued lines',
      ['HEALTHCHECK \\', `--interval=1s --timeout=${'1\\\n'.repeat(500)}${LONG} NONE`],
    ],
    ['the value of a flag', [`COPY --link --chown ${LONG} / /`]],
    ['a flag of a later build', [`ONBUILD RUN --mount="${' '.repeat(60_000)}" true`]],
    ['ports', Array(3).fill('EXPOSE 1-65535/tcp 1-65535/udp')],
    ['ports of a variable', ['ARG P="1-65535/tcp 1-65535/udp 1-65535/sctp"', 'EXPOSE $P']],
    ['ways from stage to stage', stages((before) => `COPY --from=${before} / /`)],
    ['ways of mounts', stages((before) => `RUN --mount=type=bind,from=${before},target=/x true`)],
    ['ways of numbers', stages((_, at) => `COPY --from=${at} / /`)],
    ['ways with names in variables', ['ARG S=s', ...stages((before) => `COPY --from=${before} / /`, '${S}')]],
    ['ways behind a heredoc', ['RUN <<"E E"', ...stages((before) => `COPY --from=${before} / /`)]],
    ['steps', Array(1001).fill('WORKDIR /a')],
    ['commands', Array(1001).fill('\tRUN a')],
    ['chained triggers', [`ONBUILD ${'ONBUILD '.repeat(8000)}RUN a`]],
    ['a word of a command', [`RUN echo "${LONG} ${LONG}\\\n${LONG}"`]],
    ['words of commands', Array(10).fill(`RUN echo ${LONG}`)],
    ['a heredoc', ['RUN <<E', ...Array(250_000).fill('x'), 'E']],
    ['stages', Array.from({ length: 300 }, (_, at) => `FROM a AS s${at}`)],
    ['images', Array.from({ length: 300 }, (_, at) => `COPY --from=a${at} / /`)],
  ])('%s', (_, lines) => expect(isOvergrown(lines)).toBe(true))

  it('a value that is given from outside', () =>
    expect(isOvergrown(['ARG A', 'ENV B=$A$A$A'], { A: LONG })).toBe(true))
})

it('variables that grow as those of real files do are taken', () => {
  const paths = Array.from(
    { length: 40 },
    (_, at) => `ENV PATH=/opt/tool-${at}/bin:$PATH LD_LIBRARY_PATH="/opt/tool-${at}/lib:\${LD_LIBRARY_PATH}"`,
  )
  const versions = ['ARG V=1.2.3', 'ARG W=${V//./_}', 'ARG X=${W//_/-}', 'LABEL v=$V w=$W x=${X:-none}']
  const labels = Array.from({ length: 200 }, (_, at) => `LABEL l${at}="${'x'.repeat(2000)} $V"`)
  const given = Array.from({ length: 400 }, (_, at) => `ARG given_${at}`)
  expect(isOvergrown([...paths, ...versions, ...labels, 'RUN echo $PATH$PATH$PATH'])).toBe(false)
  expect(isOvergrown([...given, ...paths])).toBe(false)
})

it('stages, ports and flags as those of real files are taken', () => {
  const services = Array.from(
    { length: 40 },
    (_, at) =>
      `FROM base AS service-${at}\nCOPY --from=deps /a /a\nCOPY --from=build /b /b\nCOPY --from=0 /c /c\nRUN --mount=type=cache,target=/root/.npm --mount=type=bind,from=deps,target=/x true`,
  )
  const lines = ['FROM base AS deps', 'RUN a', 'FROM deps AS build', 'COPY --from=deps / /', ...services]
  const ports = ['ARG PORT=3000', 'EXPOSE $PORT', 'EXPOSE ${PORT:-3000}/tcp', 'EXPOSE 8000-8100 9000']
  expect(isOvergrown(['FROM a AS base', ...lines, 'FROM base', ...ports])).toBe(false)
  const script = ['RUN <<E', ...Array(2000).fill('echo something to somebody'), 'E']
  const blob = [`RUN echo ${LONG} | base64 -d > /x`, ...Array(200).fill('RUN apt-get install -y something')]
  expect(isOvergrown([...script, ...blob])).toBe(false)
  const query = ['COPY <<E /q.sql', ...Array(30).fill('SELECT *\nFROM people AS p'), 'E']
  expect(isOvergrown(['FROM a AS base', ...query, ...lines])).toBe(false)
})
