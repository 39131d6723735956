import { expect, it } from 'vitest'
import { withoutCacheMounts } from '#server/platform/engine/build/cache-mounts'

it.each([
  'FROM evil--mount=type=cache\nRUN true',
  'F--mount=type=cache ROM evil',
  'A--mount=type=cache\nDD http://127.0.0.1/ /x',
  'FROM a\nCOPY --fro--mount=type=cachex m=evil / /',
  'FROM a\nCOPY --from=b --mount=type=cache / /',
  'FROM a\nRUN echo --mount=type=cache\nADD b /c',
  '# RUN --mount=type=cache,target=/x\nFROM a',
])('leaving cache mounts out makes no other instruction of %j', (text) =>
  expect(withoutCacheMounts(text)).toBe(text),
)

it.each([
  ['RUN --mount=type=cache,target=/a echo a', 'RUN  echo a'],
  [
    '  run \\\n  --mount=type=cache,target=/a \\\n\t--mount=type=cache \\\n  a',
    '  run \\\n   \\\n\t \\\n  a',
  ],
  ['RUN --network=none --mount=target=/a,type=cache,id=b a', 'RUN --network=none  a'],
  [
    'RUN --mount=type=secret,id=a --mount=type=cache,target=/a `\r\n  a',
    'RUN --mount=type=secret,id=a  `\r\n  a',
  ],
])('cache mounts among the flags of %j are left out', (text, rest) =>
  expect(withoutCacheMounts(text)).toBe(rest),
)
