import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
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
/** Resolves when the server has seen the end of the connection that the next request comes on. */
const endOfNextAnswer = () =>
  new Promise<void>((resolve) => {
    const hear = (message: unknown) => {
      unsubscribe('http.server.request.start', hear)
      ;(message as { response: ServerResponse }).response.once('close', resolve)
    }
    subscribe('http.server.request.start', hear)
  })

it('a file that is sent is closed when its reader goes away', async () => {
  const file = endless()
  const answer = await open(file, 'viewer')
  answer.destroy()
  await closed(file)
  expect(api.watched()).toBe(0)
})

it('a file that is found only after its reader went away is closed as well', async () => {
  const file = endless()
  const asked = Promise.withResolvers<void>()
  const found = Promise.withResolvers<Readable>()
  api.services.file = () => {
    asked.resolve()
    return found.promise
  }
  const gone = endOfNextAnswer()
  const call = request(`${api.url}/api/things/thing_1/file`, { headers: by('viewer'), agent: false })
  call.on('error', () => undefined).end()
  await asked.promise
  call.destroy()
  await gone
  found.resolve(file)
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
  // Where the length is not told either, only the end of the connection tells.
  api.services.file_bytes = undefined
  const answer = await open(file, 'viewer')
  api.services.file_bytes = '1000000'
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

it.each([
  ['a change', 'PUT', '/api/things/thing_1', 'application/json', '{"name":"a"}'],
  ['an upload', 'POST', '/api/things/thing_1/upload', 'application/gzip', 'bytes'],
])(
  '%s of what is in another project by the end of its body is refused',
  async (_what, method, path, type, body) => {
    const { locate } = api.services.http
    let asked = 0
    let project_id = 'prj_1'
    api.services.http.locate = () => {
      asked += 1
      return project_id
    }
    const headers = by('developer', { 'content-type': type, 'content-length': String(body.length) })
    const call = request(api.url + path, { method, headers, agent: false })
    call.write(body.slice(0, 1))
    await poll(() => asked > 0)
    project_id = 'prj_2'
    call.end(body.slice(1))
    const [answer] = (await once(call, 'response')) as [IncomingMessage]
    answer.resume()
    api.services.http.locate = locate
    expect([answer.statusCode, api.services.handled]).toEqual([404, []])
  },
)

it('files that nobody reads are held for one user up to a share, and others get theirs', async () => {
  const open_files: { file: Readable; answer: IncomingMessage }[] = []
  for (let status = 200; status === 200 && open_files.length < 200; ) {
    const file = endless()
    const answer = await open(file, 'viewer')
    open_files.push({ file, answer: answer.pause() })
    status = answer.statusCode!
  }
  expect(open_files.length).toBeGreaterThan(60)
  const refused = open_files.pop()!
  expect(refused.answer.statusCode).toBe(429)
  refused.answer.destroy()
  const another = await open(endless(), 'owner')
  expect(another.statusCode).toBe(200)
  another.destroy()
  for (const { answer } of open_files) answer.destroy()
  await Promise.all(open_files.map(({ file }) => closed(file)))
  const again = await open(endless(), 'viewer')
  expect(again.statusCode).toBe(200)
  again.destroy()
})
