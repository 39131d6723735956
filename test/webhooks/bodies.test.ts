import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { payloadOf } from '#server/webhooks/body'
import { createTestApi, type TestApi } from '#test/support/api'

const MIB = 1024 * 1024
let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

/** A delivery whose body stays one byte short of what it states, and the beginning of its answer. */
function unfinished(path: string, bytes: number) {
  const answer = Promise.withResolvers<string>()
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
  socket.on('data', (chunk) => answer.resolve(chunk.toString().slice(0, 12)))
  socket.on('error', answer.reject)
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
  )
  socket.write(Buffer.alloc(bytes - 1, ' '))
  return { answer: answer.promise, finish: () => socket.write(' '), end: () => socket.destroy() }
}
const hookPath = async () => {
  const hook = { kind: 'git', provider: 'github' }
  return new URL((await api.as('developer').post('/api/webhooks', hook)).body.data.url).pathname
}

describe('the body of a delivery', () => {
  it.each(['git', 'deploy'])('to an address of /%s/ that nobody has is not waited for', async (kind) => {
    const call = unfinished(`/api/webhooks/${kind}/nobody`, 1 * MIB)
    expect(await call.answer).toBe('HTTP/1.1 404')
    call.end()
  })
  it('is held only while the project has not too many large ones on their way', async () => {
    const path = await hookPath()
    const calls = [unfinished(path, 20 * MIB), unfinished(path, 20 * MIB)]
    const first = await Promise.race(
      calls.map((call, at) => call.answer.then((answer) => ({ answer, other: calls[1 - at]! }))),
    )
    expect(first.answer).toBe('HTTP/1.1 429')
    // What is held for the other one is not in its way.
    first.other.finish()
    expect(await first.other.answer).toBe('HTTP/1.1 401')
    for (const call of calls) call.end()
    // And nothing is held of them afterwards.
    const third = unfinished(path, 20 * MIB)
    third.finish()
    expect(await third.answer).toBe('HTTP/1.1 401')
    third.end()
  })
  it('that is refused does not stand before the next request of its connection', async () => {
    const seen = Promise.withResolvers<string>()
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString()
      const answers = text.match(/HTTP\/1\.1 \d{3}/g) ?? []
      if (answers.length === 2) seen.resolve(answers.join())
    })
    socket.on('error', seen.reject)
    const body = ' '.repeat(60_000)
    for (const kind of ['git', 'git'])
      socket.write(
        `POST /api/webhooks/${kind}/nobody HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
    expect(await seen.promise).toBe('HTTP/1.1 404,HTTP/1.1 404')
    socket.destroy()
  })
  it.each([
    ['more values than any push has', `[${'1,'.repeat(300_000)}1]`],
    ['lists in lists', `${'['.repeat(40)}${']'.repeat(40)}`],
    ['a key that is given twice', '{"ref":"a","ref":"b"}'],
  ])('with %s is not read, as JSON and in a form', (_what, text) => {
    expect(payloadOf(Buffer.from(text), 'application/json')).toBeUndefined()
    const form = `payload=${encodeURIComponent(text)}`
    expect(payloadOf(Buffer.from(form), 'application/x-www-form-urlencoded')).toBeUndefined()
  })
  it('of a form is its field payload, wherever that stands', () => {
    for (const form of ['payload=%7B%22a%22%3A%22b+c%22%7D', 'x=1&payload=%7B%22a%22%3A%22b+c%22%7D&y=2'])
      expect(payloadOf(Buffer.from(form), 'application/x-www-form-urlencoded')).toEqual({ a: 'b c' })
    for (const form of ['x=1', 'payload=%', 'payload=%7B'])
      expect(payloadOf(Buffer.from(form), 'application/x-www-form-urlencoded')).toBeUndefined()
  })
})
