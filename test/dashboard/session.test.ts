import { afterEach, beforeEach, expect, it, vi } from 'vitest'

/** A connection that the server ends with a code. */
class FakeSocket {
  static readonly OPEN = 1
  static all: FakeSocket[] = []
  readyState = 0
  onopen?: () => void
  onclose?: (event: { code: number }) => void
  constructor() {
    FakeSocket.all.push(this)
  }
  send() {}
  close(code = 1000) {
    this.readyState = 3
    this.onclose?.({ code })
  }
  open() {
    this.readyState = 1
    this.onopen?.()
  }
}
/** Another tab of this browser. */
class FakeTabs {
  static all: FakeTabs[] = []
  onmessage?: () => void
  told: string[] = []
  constructor() {
    FakeTabs.all.push(this)
  }
  postMessage(text: string) {
    this.told.push(text)
  }
}

let session: typeof import('@/api/session')
let client: typeof import('@/api/client')
let live: typeof import('@/api/live')
/** Who the server says is logged in with the cookie of this browser. */
let person: string | undefined
let went: string[]
const newest = () => FakeSocket.all.at(-1)!
const settled = () => vi.advanceTimersByTimeAsync(0)

beforeEach(async () => {
  vi.useFakeTimers()
  vi.resetModules()
  // Browsers know what an address without a host belongs to.
  vi.stubGlobal(
    'Request',
    class extends Request {
      constructor(url: string, options?: RequestInit) {
        super(new URL(url, 'http://localhost:9000'), options)
      }
    },
  )
  client = await import('@/api/client')
  live = await import('@/api/live')
  session = await import('@/api/session')
  FakeSocket.all = []
  FakeTabs.all = []
  went = []
  person = 'usr_1'
  const target = { addEventListener: () => undefined, removeEventListener: () => undefined }
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('BroadcastChannel', FakeTabs)
  const assign = (path: string) => void went.push(path)
  vi.stubGlobal('location', {
    protocol: 'http:',
    host: 'localhost:9000',
    href: 'http://localhost:9000/',
    assign,
  })
  vi.stubGlobal('document', { ...target, visibilityState: 'visible' })
  vi.stubGlobal('window', target)
  vi.stubGlobal('fetch', async () =>
    person === undefined
      ? Response.json({ error: { code: 'UNAUTHORIZED', message: 'Log in.' } }, { status: 401 })
      : Response.json({
          data: {
            id: person,
            role: 'member',
            projects: [],
            preferences: {},
            password_change_required: false,
          },
        }),
  )
  await session.openSession()
  newest().open()
})
afterEach(() => {
  live.stopLive()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('a page whose session was ended elsewhere asks to log in again and tries no more until then', async () => {
  person = undefined
  newest().close(4401)
  await settled()
  expect(client.session_ended.value).toBe(true)
  expect(session.me.value?.id).toBe('usr_1')
  const tries = FakeSocket.all.length
  await vi.advanceTimersByTimeAsync(120_000)
  expect(FakeSocket.all.length).toBe(tries)
  person = 'usr_1'
  await session.logIn({ email: 'a@example.com', password: 'secret' })
  expect([client.session_ended.value, FakeSocket.all.length]).toEqual([false, tries + 1])
})
it('it still does so after the rights of its person were read again', async () => {
  await session.openSession()
  person = undefined
  newest().close(4401)
  await settled()
  expect(client.session_ended.value).toBe(true)
})
it('a page whose connection is refused after it was lost learns that its session ended meanwhile', async () => {
  newest().close(1006)
  await settled()
  expect(client.session_ended.value).toBe(false)
  person = undefined
  await vi.advanceTimersByTimeAsync(1_000)
  newest().close(1006)
  await settled()
  expect(client.session_ended.value).toBe(true)
})
it('a page shows and does nothing more once another tab has logged in somebody else', async () => {
  person = 'usr_2'
  FakeTabs.all[0]!.onmessage!()
  await settled()
  expect([went, session.me.value?.id]).toEqual([['/'], 'usr_1'])
})
it('a logout that did not reach the server does not look as if it had', async () => {
  vi.stubGlobal('fetch', async () => {
    throw new TypeError('Failed to fetch')
  })
  const out = session.logOut()
  await vi.advanceTimersByTimeAsync(60_000)
  expect([await out, went]).toEqual([false, []])
})
it('other tabs of the browser are told of every login and logout', async () => {
  await session.logIn({ email: 'a@example.com', password: 'secret' })
  await session.logOut()
  expect(FakeTabs.all.map(({ told }) => told)).toEqual([['in', 'out']])
  expect(went).toEqual(['/login'])
})
