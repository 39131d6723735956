import { describe, expect, it } from 'vitest'
import { buildError } from '#server/platform/engine/build/failure'
import { missingProgram, ownCheck, tellingLines } from '#server/platform/engine/build/telling-lines'

const NPM_10 = [
  '',
  '> shop@1.0.0 build',
  '> tsc -p .',
  '',
  "\u001b[96msrc/index.ts\u001b[0m:\u001b[93m3\u001b[0m:7 - error TS2322: Type 'string' is not assignable.",
  'npm notice',
  'npm notice New major version of npm available! 10.9.4 -> 11.6.0',
  'npm notice Changelog: https://github.com/npm/cli/releases/tag/v11.6.0',
  'npm notice To update run: npm install -g npm@11.6.0',
  'npm notice',
  'npm error Lifecycle script `build` failed with error:',
  'npm error code 2',
  'npm error path /app',
  'npm error workspace shop@1.0.0',
  'npm error location /app/apps/shop',
  'npm error command failed',
  'npm error command sh -c tsc -p .',
  'npm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-22T12_00_00_000Z-debug-0.log',
]
const NPM_6 = [
  'Error: boom',
  'npm ERR! code ELIFECYCLE',
  'npm ERR! errno 1',
  'npm ERR! shop@1.0.0 build: `webpack`',
  'npm ERR! Exit status 1',
  'npm ERR! ',
  'npm ERR! Failed at the shop@1.0.0 build script.',
  'npm ERR! This is probably not a problem with npm. There is likely additional logging output above.',
  '',
  'npm ERR! A complete log of this run can be found in:',
  'npm ERR!     /root/.npm/_logs/2026-11-22T12_00_00_000Z-debug.log',
]

describe('the lines that tell why a command failed', () => {
  it.each([
    ['npm 10', NPM_10, "src/index.ts:3:7 - error TS2322: Type 'string' is not assignable."],
    ['npm 6', NPM_6, 'Error: boom'],
    [
      'the classic Yarn',
      [
        'Error: boom',
        'error Command failed with exit code 1.',
        'info Visit https://yarnpkg.com/en/docs/cli/run for documentation about this command.',
      ],
      'Error: boom',
    ],
    ['pnpm', ['Error: boom', ' ELIFECYCLE  Command failed with exit code 1.'], 'Error: boom'],
    ['Bun', ['Error: boom', 'error: script "build" exited with code 1'], 'Error: boom'],
  ])('end with what the program said, without the trailer of %s', (_, lines, last) => {
    expect(tellingLines(lines).at(-1)).toBe(last)
  })

  it('keep what npm itself complains about', () => {
    const lines = [
      'npm error code E404',
      'npm error 404 Not Found - GET https://registry.example/nosuch',
      "npm error 404  'nosuch@1.0.0' is not in this registry.",
      'npm error A complete log of this run can be found in: /root/.npm/_logs/x.log',
    ]
    expect(tellingLines(lines)).toEqual(lines.slice(0, 3))
  })

  it('are the last ones, and all there is where a command prints nothing but a trailer', () => {
    const many = Array.from({ length: 100 }, (_, at) => `line ${at}`)
    expect(tellingLines(many)).toEqual(many.slice(-30))
    expect(tellingLines(['npm error code 1'])).toEqual(['npm error code 1'])
    expect(tellingLines([])).toEqual([])
  })
})

describe('a missing program', () => {
  it.each([
    ['sh: 1: vite: not found', 'vite'],
    ['/bin/sh: 1: \u001b[31mpoetry\u001b[0m: not found', 'poetry'],
    ['sh: 1: exec: gunicorn: not found', 'gunicorn'],
    ['/bin/sh: make: not found', 'make'],
    ['bash: line 1: cargo: command not found', 'cargo'],
    ['./build.sh: line 12: jq: command not found', 'jq'],
    ['/usr/bin/env: ‘bash’: No such file or directory', 'bash'],
    ["env: 'node\\r': No such file or directory", 'node'],
    ['make: gcc: No such file or directory', 'gcc'],
  ])('is named by %j', (line, name) => {
    expect(missingProgram(['before', line, 'npm error code 127'])).toBe(name)
  })

  it('is in the sentence of the build that needed it, whatever the package manager ended with', () => {
    const told = (exit_code: number, lines: string[]) =>
      buildError({
        message: `process "/bin/sh -c npm run build" did not complete successfully: exit code: ${exit_code}`,
        lines,
        dockerfile: '',
        memory_bytes: 1,
        memory: 'fine',
      })
    expect(told(127, ['sh: 1: vite: not found', 'npm error code 127'])).toMatchObject({
      message: 'The program `vite` is not installed: the command `npm run build` failed with exit code 127.',
      hint: expect.stringContaining('`vite`'),
      log: ['sh: 1: vite: not found'],
    })
    expect(told(1, ['sh: 1: vite: not found', ' ELIFECYCLE  Command failed.']).message).toContain('`vite`')
    expect(told(1, ['sh: 1: x: not found', '1', '2', '3']).message).not.toContain('`x`')
  })

  it('is not taken from other lines', () => {
    expect(missingProgram(['Error: page not found', 'module foo: not found in bar'])).toBeUndefined()
  })
})

describe('the command that failed', () => {
  it.each([
    ['a builder that prints it as it is', 'executor failed running [/bin/sh -c ', '\n', ']: exit code: 1'],
    [
      'a builder that quotes it',
      'process "/bin/sh -c ',
      '\\n',
      '" did not complete successfully: exit code: 1',
    ],
  ])('is the one of the user, without how variables came to it, by %s', (_, before, line_break, after) => {
    const message = `${before}. /run/secrets/portreeve-variables${line_break}npm run build${after}`
    const { message: told } = buildError({ message, dockerfile: '', memory_bytes: 1, memory: 'fine' })
    expect(told).toBe('The command `npm run build` failed with exit code 1.')
  })
})

describe('a check of our own', () => {
  it('is its sentence, never a failed command', () => {
    const lines = ['ok', 'portreeve: The build left no folder `build`.', 'portreeve: It left `dist`.']
    expect(ownCheck(lines)).toEqual({ message: 'The build left no folder `build`.', hint: 'It left `dist`.' })
    expect(ownCheck([...lines, 'something after it'])).toBeUndefined()
  })
})

it.each([
  [
    'a folder that the build should have left',
    '[app 4/6] COPY --from=build --chown=10001:10001 /app/.next/standalone /app',
    'failed to compute cache key: "/app/.next/standalone" not found: not found',
    'The build left no `/app/.next/standalone`.',
  ],
  [
    'a file that is not in the source',
    '[2/3] COPY nosuch .',
    'failed to compute cache key: "/nosuch" not found: not found',
    'The Dockerfile copies `nosuch`, which is not in the source or is left out by .dockerignore.',
  ],
])('a copy that fails names %s', (_, step, message, sentence) => {
  const error = buildError({ message, step, dockerfile: '', memory_bytes: 1, memory: 'fine' })
  expect(error.message).toBe(sentence)
  // No command failed that could have printed something.
  expect(error.log).toEqual([message])
})

it.each([
  [
    'npm error code EUSAGE\nnpm error `npm ci` can only install packages when your package.json and package-lock.json or npm-shrinkwrap.json are in sync.',
    'package-lock.json',
  ],
  [' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile"', 'pnpm-lock.yaml'],
  ['error Your lockfile needs to be updated, but yarn was run with `--frozen-lockfile`.', 'yarn.lock'],
])('a lockfile out of step is told with what to do: %s', (line, file) => {
  const error = buildError({
    message: 'executor failed running [/bin/sh -c install]: exit code: 1',
    lines: line.split('\n'),
    dockerfile: '',
    memory_bytes: 1,
    memory: 'fine',
  })
  expect(error.hint).toContain(`${file} does not fit package.json`)
})
