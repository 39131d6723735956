import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createApi } from '../../cli/client/api.ts'
import { writeContexts } from '../../cli/client/contexts.ts'
import { CLIENT_VERBS } from '../../cli/client-verbs.ts'
import { complete } from '../../cli/complete.ts'

let answer: (request: IncomingMessage, response: ServerResponse) => void
let asked: IncomingMessage[]
let folder: string
const server = createServer((request, response) => {
  asked.push(request)
  answer(request, response)
})
let url: string
beforeEach(async () => {
  asked = []
  folder = mkdtempSync(join(tmpdir(), 'ptr-http-'))
  answer = () => undefined
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

describe('a call of the client', () => {
  it('ends when its caller gives it up, and with it the connection', async () => {
    const giving_up = new AbortController()
    const closed = new Promise<void>((resolve) => {
      answer = (request) => {
        request.socket.once('close', () => resolve())
        giving_up.abort()
      }
    })
    const call = createApi('a', { url }).GET('/api/apps', { signal: giving_up.signal })
    await expect(call).rejects.toThrow(`${url} does not answer`)
    await closed
  })
  it('takes nothing that it does not do', () => {
    const { GET, POST } = createApi('a', { url })
    const never = () => [
      // @ts-expect-error: headers are the client's own.
      GET('/api/apps', { headers: { 'X-API-Key': 'k' } }),
      // @ts-expect-error: answers are read by their type.
      GET('/api/apps', { parseAs: 'text' }),
      // @ts-expect-error: redirects are followed nowhere.
      POST('/api/auth/refresh', { redirect: 'follow' }),
    ]
    expect(never).toBeTypeOf('function')
  })
})

describe('the completion of a shell', () => {
  it('waits a moment and no longer for a server that hangs, also where the login is to be renewed', async () => {
    const soon = Buffer.from(JSON.stringify({ exp: Math.floor(Date.now() / 1000) + 86_400 })).toString(
      'base64url',
    )
    const path = join(folder, 'credentials.json')
    vi.stubEnv('PORTREEVE_CREDENTIALS', path)
    vi.stubEnv('PORTREEVE_URL', '')
    vi.stubEnv('PORTREEVE_CONTEXT', '')
    writeContexts(process.env, { current: 'a', contexts: { a: { url, token: `x.${soon}.x` } } })
    await complete([{ heading: 'Client:', verbs: CLIENT_VERBS }], ['logs', ''])
    expect(asked.map(({ url: address }) => address)).toEqual(['/api/apps?per_page=100'])
  })
})
