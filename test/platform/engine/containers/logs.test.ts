import { afterEach, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const MIB = 1024 ** 2
const STARTED = { Id: 'c', Config: { Tty: false, Labels: {} }, State: { Running: true, Status: 'running' } }

/** One piece of output in the engine's framing. */
function frame(at: string, text: string): Buffer {
  const body = Buffer.from(`${at} ${text}`)
  const header = Buffer.alloc(8)
  header[0] = 1
  header.writeUInt32BE(body.length, 4)
  return Buffer.concat([header, body])
}
const second = (n: number) => `2026-01-01T00:00:${String(n).padStart(2, '0')}.000000000Z`
/** A line of so many bytes as the engine spreads it, without its end. */
const open = (at: string, bytes: number) =>
  Array.from({ length: bytes / 16_384 }, () => frame(at, 'y'.repeat(16_384)))

/** An engine whose follower tells something at each reading, then falls silent without an end. */
async function silentAfter(readings: readonly (readonly Buffer[])[]) {
  let reading = 0
  const server = await createEngineStandIn(({ path }, response) => {
    if (!path.endsWith('/logs')) return json(response, STARTED)
    response.writeHead(200)
    for (const part of readings[reading] ?? []) response.write(part)
    reading += 1
  })
  const engine = createDockerEngine({ docker_host: server.docker_host })
  closing.push(engine.close, server.close)
  const asked = () =>
    server.seen.filter(({ path }) => path.endsWith('/logs')).map(({ query }) => query.get('since'))
  return { engine, asked }
}

test('the log of an instance that is followed goes on after a flood in which the engine lost its place, with what came since', async () => {
  const { engine, asked } = await silentAfter([
    open(second(1), 5 * MIB),
    [frame(second(2), 'after\n'), frame(second(3), 'later\n')],
  ])
  const texts: string[] = []
  for await (const { text } of engine.logs('c', { follow: true })) {
    texts.push(text.slice(0, 5))
    if (text === 'later') break
  }
  expect(texts).toEqual(['yyyyy', 'after', 'later'])
  expect(asked()).toEqual([null, '1767225601.000000000'])
})

test('the log of an instance that is followed ends without an error when it is removed between two questions', async () => {
  let looks = 0
  const server = await createEngineStandIn(({ path }, response) => {
    if (!path.endsWith('/logs')) return json(response, STARTED)
    looks += 1
    if (looks > 1) return json(response, { message: 'No such container: c' }, 404)
    response.writeHead(200)
    response.end(frame(second(1), 'ready\n'))
  })
  const engine = createDockerEngine({ docker_host: server.docker_host })
  closing.push(engine.close, server.close)
  const texts: string[] = []
  for await (const { text } of engine.logs('c', { follow: true })) texts.push(text)
  expect(texts).toEqual(['ready'])
})
