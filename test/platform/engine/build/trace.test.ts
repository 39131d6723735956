import { expect, it } from 'vitest'
import { createTraceReader } from '#server/platform/engine/build/trace'
import { traceCodec } from '#server/platform/engine/build/wire'

const VERTEX = 'sha256:1'
const printed = (msg: string) =>
  Buffer.from(
    traceCodec.encode({ logs: [{ vertex: VERTEX, stream: 1, msg: Buffer.from(msg) }] } as never),
  ).toString('base64')

it('a step that prints a megabyte of short lines at once lets others be served in between', async () => {
  let lines = 0
  let passed_ms = 0
  const served: number[] = []
  const trace = createTraceReader(
    'prj_1',
    () => (lines += 1),
    undefined,
    () => (passed_ms += 1),
  )
  const reading = trace.read(printed('\n'.repeat(1_000_000)))
  while (lines < 1_000_000) {
    served.push(lines)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await reading
  expect(Math.max(...served.map((count, at) => count - (served[at - 1] ?? 0)))).toBeLessThan(50_000)
})
it('a character on the border of two parts of a message is one', async () => {
  const texts: string[] = []
  const trace = createTraceReader('prj_1', ({ text }) => void texts.push(text))
  await trace.read(printed(`${'a'.repeat(4095)}ü\n`))
  expect(texts).toEqual([`${'a'.repeat(4095)}ü`])
})

it('a step whose base image is still fetched for it counts as running only once that is here', async () => {
  let now_ms = 0
  const trace = createTraceReader(
    'prj_1',
    () => {},
    undefined,
    () => now_ms,
  )
  const at = { seconds: 1, nanos: 0 }
  const tell = (name: string, more: object) => {
    const vertexes = [{ digest: `sha256:${name}`, name, started: at, ...more }]
    return trace.read(Buffer.from(traceCodec.encode({ vertexes } as never)).toString('base64'))
  }
  const [base, step] = ['[1/2] FROM docker.io/library/node:22', '[2/2] RUN npm ci']
  await tell(base, { completed: at })
  await tell(step, {})
  expect(trace.runningFor(5_000)).toBe(5_000)
  now_ms = 6_000
  await tell(base, {})
  expect(trace.runningFor(60_000)).toBe(0)
  now_ms = 60_000
  await tell(base, { completed: at })
  expect(trace.runningFor(63_000)).toBe(3_000)
  await tell(step, { completed: at })
  expect(trace.runningFor(90_000)).toBe(0)
})

it('a layer is told to be of the step that began just before it, once that has ended', async () => {
  const trace = createTraceReader('prj_1', () => {})
  const tell = (name: string, more: object) => {
    const vertexes = [{ digest: `sha256:${name}`, name, ...more }]
    return trace.read(Buffer.from(traceCodec.encode({ vertexes } as never)).toString('base64'))
  }
  const started = { seconds: 1_800_000_100, nanos: 500_000_000 }
  const completed = { seconds: 1_800_000_160, nanos: 0 }
  const at = (ms: number) => trace.madeAt(1_800_000_100_500 + ms)
  await tell('[2/3] RUN npm ci', { started })
  expect(at(100)).toBe(false)
  await tell('[2/3] RUN npm ci', { started, completed })
  expect([at(-1_000), at(100), at(30_000)]).toEqual([false, true, false])
  await tell('[internal] load build context', { started, completed: started })
  await tell('[1/3] FROM docker.io/library/node:22', { started, completed: started, cached: true })
  expect(trace.usesCached()).toBe(false)
  await tell('[3/3] RUN npm test', { started, completed: started, cached: true })
  expect(trace.usesCached()).toBe(true)
  await tell('[other 1/1] RUN sleep 60', { started })
  expect(trace.usesCached()).toBe(false)
})
