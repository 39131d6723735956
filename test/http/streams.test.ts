import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { poll } from '#test/support/poll'
import { by, startTinyApi, type TinyApi } from './tiny-api.ts'

let api: TinyApi
beforeAll(async () => {
  api = await startTinyApi()
})
afterAll(() => api.close())

/** A file without an end: its next piece is there whenever one is asked for. */
const endless = () =>
  new Readable({
    read() {
      setImmediate(() => this.push(Buffer.alloc(1024)))
    },
  })
/** Lets the next answer be this file, and begins to read it. */
async function open(file: Readable, caller: string, method = 'GET'): Promise<IncomingMessage> {
  api.services.file = () => file
  const call = request(`${api.url}/api/things/thing_1/file`, { method, headers: by(caller), agent: false })
  call.end()
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  return answer.on('error', () => undefined)
}
/** Waits until nothing more can come, also after the connection was cut. */
const ended = (answer: IncomingMessage) => new Promise((resolve) => answer.once('close', resolve))
const closed = (file: Readable) => poll(() => file.destroyed)

it('a file that is sent is closed when its reader goes away', async () => {
  const file = endless()
  const answer = await open(file, 'viewer')
  answer.destroy()
  await closed(file)
  expect(api.watched()).toBe(0)
})

it('nothing of a file is read for HEAD', async () => {
  let is_read = false
  const file = new Readable({
    read() {
      is_read = true
      this.push(null)
    },
  })
  const answer = await open(file, 'viewer', 'HEAD')
  answer.resume()
  await ended(answer)
  await closed(file)
  expect([is_read, answer.statusCode, answer.headers['content-length']]).toEqual([false, 200, '1000000'])
})

it('a file that breaks off midway ends the connection, so that nobody takes it for whole', async () => {
  const file = endless()
  const answer = await open(file, 'viewer')
  answer.resume()
  file.destroy(new Error('the disk is gone'))
  await ended(answer)
  expect(answer.complete).toBe(false)
})

it('a file that cannot be begun is an error as any other, without the headers of the file', async () => {
  const file = new Readable({
    read() {
      this.destroy(new Error('the disk is gone'))
    },
  })
  api.services.file = () => file
  const answer = await api.send('GET', '/api/things/thing_1/file', { headers: by('viewer') })
  expect([answer.status, answer.body.error.code]).toEqual([500, 'INTERNAL_ERROR'])
  expect(answer.headers.get('content-disposition')).toBeNull()
})

it('a file is sent on while its caller may have it, whatever is told of them and of others', async () => {
  const file = endless()
  const answer = await open(file, 'owner')
  api.services.tell('owner')
  api.services.revoke('stranger')
  await once(answer, 'data')
  expect([file.destroyed, api.watched()]).toEqual([false, 1])
  answer.destroy()
  await closed(file)
})

it('a file is cut off once the session, key or user of its caller has ended', async () => {
  const file = endless()
  const answer = await open(file, 'developer')
  answer.resume()
  api.services.revoke('developer')
  await ended(answer)
  expect([answer.complete, file.destroyed, api.watched()]).toEqual([false, true, 0])
})

it('an upload is refused as soon as its sender may not send it any more, not at its end', async () => {
  const call = request(`${api.url}/api/things/thing_1/upload`, {
    method: 'POST',
    headers: by('owner', { 'content-type': 'application/gzip' }),
    agent: false,
  })
  call.on('error', () => undefined).write('begun')
  await poll(() => api.watched() === 1)
  api.services.revoke('owner')
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  expect([answer.statusCode, api.watched()]).toEqual([401, 0])
  call.destroy()
})
