import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSocketOptions } from '#server/http/socket-options'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi()
})
afterAll(() => api.close())

/** Status and body of a request with these lines of headers. */
const send = (path: string, ...lines: string[]) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString()
    })
    socket.on('error', reject).on('close', () => resolve(text))
    socket.write([`GET ${path} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n'))
  })
const HOSTILE = [
  ['two hosts', ['Host: one.test', 'Host: two.test']],
  ['one host twice', ['Host: one.test', 'hOST: one.test']],
  ['what is no host', ['Host: one.test/path']],
  ['a host of two words', ['Host: a b:::']],
  ['a host with a user', ['Host: user@one.test']],
  ['no host', []],
] as [string, string[]][]

describe('RFC 9112 3.2: a request', () => {
  it.each(HOSTILE)('with %s is 400, whatever it asks for', async (_what, lines) => {
    for (const path of ['/api/auth/me', '/', '/api/nowhere'])
      expect((await send(path, ...lines)).slice(0, 12), path).toBe('HTTP/1.1 400')
  })
  it.each(['one.test', 'one.test:8080', '[::1]:80', '127.0.0.1', 'xn--bcher-kva.test', ''])(
    'with the one host «%s» is taken',
    async (host) => {
      expect((await send('/api/auth/me', `Host: ${host}`)).slice(0, 12)).toBe('HTTP/1.1 401')
    },
  )
  it('that opens a WebSocket with two hosts is refused as well', () => {
    const { hooks } = createSocketOptions() as unknown as {
      hooks: { upgrade(request: object): { status: number } | undefined }
    }
    const status = (...rawHeaders: string[]) => {
      const socket = { on: () => undefined }
      const request = { url: '/api/ws', rawHeaders, socket } as unknown as IncomingMessage
      return hooks.upgrade({ _req: request })?.status
    }
    expect(status('Host', 'one.test', 'Host', 'two.test')).toBe(400)
    expect(status('Host', 'one.test')).toBeUndefined()
  })
})
