import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'

const CHECKS = 100
const DAYS = 90
const DAY_S = 86_400
let api: TestApi
let page: string
let first_id: string
let sockets: Socket[]
beforeEach(async () => {
  sockets = []
  api = await createTestApi()
  for (let n = 0; n < CHECKS; n += 1) {
    const body = { name: `Part ${n}`, target: 'https://shop.example.com/', public: true }
    const { data } = (await api.as('developer').post('/api/monitoring/uptime', body)).body
    page = data.status_page
    if (n === 0) first_id = data.id
    const today = Math.floor(api.fakes.clock.now() / 1000 / DAY_S) * DAY_S
    for (let day = 0; day < DAYS; day += 1)
      api.kernel.db
        .sql('INSERT INTO uptime_results VALUES (?, ?, ?, 288, 0, 5, 5, NULL)')
        .run(data.id, DAY_S, today - day * DAY_S)
  }
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await api.close()
})

/** Asks for the page more often than sockets take in by themselves, and takes nothing of it. */
function askAndTakeNothing(): void {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1').pause()
  sockets.push(socket.on('error', () => undefined))
  socket.write(`GET ${page} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(60))
}

it('a status page that is asked for without an account and never taken is held up to a share of its address', async () => {
  const { answers } = api.services.http
  const isFull = () => {
    try {
      answers.requireRoom('127.0.0.1')
      return false
    } catch {
      return true
    }
  }
  // What was full a moment ago has room again for a little when a socket takes in more than it did.
  await poll(async () => {
    if (!isFull()) askAndTakeNothing()
    return (await api.request('GET', page)).status === 429
  })
  for (const socket of sockets) socket.destroy()
  await poll(() => !isFull())
  expect((await api.request('GET', page)).status).toBe(200)
})
it('is made once for all who ask within ten seconds: its style is let through by what it is', async () => {
  const first = await api.request('GET', page)
  await api.as('developer').put(`/api/monitoring/uptime/${first_id}`, { name: 'Renamed' })
  expect((await api.request('GET', page)).text).toBe(first.text)
  expect(first.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
  api.fakes.clock.advance(10_000)
  expect((await api.request('GET', page)).text).toContain('Renamed')
})
