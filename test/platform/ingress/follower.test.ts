import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { createLog } from '#server/kernel/log'
import { createRequestFollower } from '#server/platform/ingress/requests/follower'
import { poll } from '#test/support/poll'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close()
})

/** More than a worker keeps. */
const LINES = 25_000
const line = (n: number) =>
  JSON.stringify([
    ...[`id-${n}`, 'b1|app_1', '203.0.113.7', 'http', 1_700_000_000_000, 'GET', 'shop.test', `/${n}`],
    ...['HTTP/1.1', 200, 10, 10, 'tester', 'app_1', '--', 0, 0, 0, 0, 1, 1],
  ])

/** A worker that tells all that it kept at once, as it does after Portreeve was away. */
async function worker(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-edge-'))
  closing.push(() => rmSync(folder, { recursive: true, force: true }))
  const kept = Array.from({ length: LINES }, (_, n) => `${line(n)}\n`).join('')
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .once('data', () => socket.write(`Pid: 7\nStart_time_sec: 1\n\n${kept}`))
  })
  closing.push(() => server.close())
  const path = join(folder, 'log.sock')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return path
}

it.each([
  ['the last of them that was read is gone', '[["7.1","id-gone"]]', 0],
  ['some were read before', '[["7.1","id-9"]]', 10],
  ['none were read before', '[]', 0],
])(
  'thousands of requests that a worker kept are told a hundred at a time: %s',
  async (_what, cursor, first) => {
    const socket_path = await worker()
    const end = new AbortController()
    closing.push(() => end.abort())
    const told: string[] = []
    let most = 0
    createRequestFollower({
      socket_path,
      cli: {
        workers: async () => [{ pid: 7, old: false }],
        run: async () => '',
        reload: async () => undefined,
      },
      log: createLog('text', 'error'),
    }).follow({
      cursor,
      signal: end.signal,
      onRequests(requests) {
        most = Math.max(most, requests.length)
        told.push(...requests.map(({ id }) => id))
      },
    })
    // So many are read in one second, and the rest in the next.
    await poll(() => told.length >= LINES - first, 30_000)
    expect(told).toEqual(Array.from({ length: LINES - first }, (_, n) => `id-${n + first}`))
    expect(most).toBe(100)
  },
)
