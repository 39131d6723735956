import { expect, it } from 'vitest'
import { createClassicLog, withoutCacheMounts } from '#server/platform/engine/build/classic'

it('a command that prints a megabyte of short lines at once lets others be served in between', async () => {
  let lines = 0
  let passed_ms = 0
  const served: number[] = []
  const log = createClassicLog(
    'prj_1',
    () => (lines += 1),
    () => (passed_ms += 1),
  )
  const reading = log.text('\n'.repeat(1_000_000))
  while (lines < 1_000_000) {
    served.push(lines)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await reading
  expect(Math.max(...served.map((count, at) => count - (served[at - 1] ?? 0)))).toBeLessThan(50_000)
})

it('short writes of a command rest as one long one does', async () => {
  let passed_ms = 0
  let rests = 0
  const log = createClassicLog(
    'prj_1',
    () => {},
    () => (passed_ms += 1),
  )
  let is_writing = true
  const writing = (async () => {
    for (let write = 0; write < 1_000; write += 1) await log.text('y\n')
    is_writing = false
  })()
  while (is_writing) {
    rests += 1
    await new Promise((resolve) => setImmediate(resolve))
  }
  await writing
  expect(rests).toBeGreaterThan(50)
})

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
