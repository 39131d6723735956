import { describe, expect, test } from 'vitest'
import { buildError } from '#server/platform/engine/build/failure'
import { EngineError } from '#server/platform/engine/engine'
import { startError, initError } from '#server/platform/engine/containers/start-failure'

const evidence = {
  dockerfile: 'FROM node:22-slim\nRUN npm ci',
  memory_bytes: 512 * 1024 ** 2,
  memory: 'fine' as const,
}

/** Rows: what builders of several versions say, the code and the sentence that the user gets. */
const ROWS: [string, string, string | RegExp, object?][] = [
  [
    'executor failed running [/bin/sh -c npm run build]: exit code: 1',
    'build_failed',
    'The command `npm run build` failed with exit code 1.',
  ],
  [
    'failed to solve: process "/bin/sh -c npm run build" did not complete successfully: exit code: 2',
    'build_failed',
    'The command `npm run build` failed with exit code 2.',
  ],
  [
    "The command '/bin/sh -c npm ci &&     npm run build' returned a non-zero code: 1",
    'build_failed',
    'The command `npm ci && npm run build` failed with exit code 1.',
  ],
  [
    'process "/bin/bash -o pipefail -c x" did not complete successfully: exit code: 127',
    'build_failed',
    /exit code 127/,
  ],
  [
    'executor failed running [/bin/sh -c make]: exit code: 137',
    'out_of_memory',
    'The command `make` was killed with exit code 137, because the build needed more memory than its limit of 512 MiB.',
    { memory: 'limit_hit' },
  ],
  [
    'executor failed running [/bin/sh -c make]: exit code: 2',
    'out_of_memory',
    /`make` was killed with exit code 2/,
    { memory: 'killed' },
  ],
  [
    'executor failed running [/bin/sh -c kill -9 $$]: exit code: 137',
    'build_failed',
    'The command `kill -9 $$` failed with exit code 137.',
  ],
  [
    'failed to solve: write /var/lib/docker/x: no space left on device',
    'disk_full',
    /disk of the container engine is full/,
  ],
  [
    'failed to solve with frontend dockerfile.v0: failed to create LLB definition: docker.io/library/nosuch:1: not found',
    'image_not_found',
    /^The base image nosuch:1 does not exist/,
    { step: '[internal] load metadata for docker.io/library/nosuch:1' },
  ],
  [
    "pull access denied for acme/app, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
    'image_not_found',
    /^The base image acme\/app does not exist/,
  ],
  [
    'failed to authorize: unauthorized: authentication required',
    'image_denied',
    /refused access to the base image ghcr.io\/a\/b:1/,
    { step: '[internal] load metadata for ghcr.io/a/b:1' },
  ],
  [
    'Get "https://r.example/v2/": dial tcp: lookup r.example: no such host',
    'image_not_found',
    /^The base image node:22-slim is not on this server, and its registry cannot be reached\.$/,
  ],
  [
    'failed to load cache key: Get "http://127.0.0.1:8080/x": dial tcp 127.0.0.1:8080: connect: connection refused',
    'build_failed',
    'The Dockerfile adds something from 127.0.0.1:8080, which the container engine cannot reach.',
  ],
  [
    'ADD failed: Get "https://files.example:1/x": dial tcp 93.184.216.34:1: i/o timeout',
    'build_failed',
    'The Dockerfile adds something from files.example:1, which the container engine cannot reach.',
  ],
  [
    'failed to solve with frontend gateway.v0: docker.io/docker/dockerfile:1: not found',
    'image_not_found',
    /^The `# syntax=docker\/dockerfile:1` line/,
    { dockerfile: '# syntax=docker/dockerfile:1\nFROM x' },
  ],
  [
    'failed to compute cache key: "/nope" not found: not found',
    'build_failed',
    'The Dockerfile copies `nope`, which is not in the source or is left out by .dockerignore.',
  ],
  [
    'failed to solve: failed to compute cache key: failed to calculate checksum of ref x::y: "/a b": not found',
    'build_failed',
    /copies `a b`/,
  ],
  [
    'COPY failed: file not found in build context or excluded by .dockerignore: stat dist: file does not exist',
    'build_failed',
    /copies `dist`/,
  ],
  [
    'dockerfile parse error line 2: unknown instruction: FRUM',
    'build_failed',
    'The Dockerfile is not valid: dockerfile parse error line 2: unknown instruction: FRUM',
  ],
  ['secret npm_token not found: not found', 'build_failed', /build secret `npm_token`, which is not set/],
  ['something \u001b[31mnew\u001b[0m\nand odd', 'build_failed', 'The build failed: something new and odd'],
]

describe('a failed build', () => {
  test.each(ROWS)('%j is %s', (message, code, sentence, more = {}) => {
    const error = buildError({ ...evidence, ...more, message })
    expect(error).toMatchObject({
      code,
      message: typeof sentence === 'string' ? sentence : expect.stringMatching(sentence),
      hint: expect.any(String),
    })
  })

  test('quotes a command of any length and shape in one bounded line', () => {
    const { message } = buildError({
      ...evidence,
      message: `executor failed running [/bin/sh -c ${'echo `x`\n'.repeat(500)}]: exit code: 1`,
    })
    expect(message).toMatch(/^The command `[^`\n]{1,120}` failed with exit code 1\.$/)
  })
})

describe('a container that cannot start', () => {
  const failed = (words: string) => new EngineError('failed', 'x', undefined, { cause: new Error(words) })
  test.each([
    [
      'OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "npx": executable file not found in $PATH: unknown',
      /^The program `npx` does not exist in the image/,
    ],
    [
      'failed to create task: OCI runtime create failed: exec: "/app/run.sh": permission denied: unknown',
      /^The program `\/app\/run\.sh` is not executable/,
    ],
    [
      'unable to find user app: no matching entries in passwd file',
      /user named in the Dockerfile does not exist/,
    ],
    ['No command specified', /^The container could not start: No command specified$/],
  ])('because of %j says so', (words, sentence) => {
    expect(startError(failed(words))).toMatchObject({
      code: 'start_failed',
      message: expect.stringMatching(sentence),
    })
  })

  test('keeps errors that have another reason', () => {
    const away = new EngineError('unavailable', 'gone')
    expect(startError(away)).toBe(away)
    expect(initError('[FATAL tini (7)] exec nosuch failed: No such file or directory')).toMatchObject({
      code: 'start_failed',
    })
    expect(initError('an ordinary line')).toBeUndefined()
  })
})

test('what a Dockerfile says in megabytes holds up nobody, and the reason at its end is told', () => {
  const long = 'a'.repeat(1_000_000)
  expect(buildError({ ...evidence, message: `failed to compute cache key: "/${long}"` }).message).toMatch(
    /^The Dockerfile copies/,
  )
  const commands = 'process "'.repeat(200_000)
  expect(buildError({ ...evidence, message: `process "/bin/sh -c ${commands}` }).code).toBe('build_failed')
  const { message } = buildError({
    ...evidence,
    message: `process "/bin/sh -c echo ${long}" did not complete successfully: exit code: 3`,
  })
  expect(message).toMatch(/^The command `echo a+…` failed with exit code 3\.$/)
})
