import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import * as v from 'valibot'
import { isMediaType, isUtf8, limitStream, parseJson, readBytes } from '#server/http/input'
import { parseBody } from '#server/http/validation'

/** A body that arrives as the test sends it. */
const body = (headers: Record<string, string> = {}) =>
  Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'read',
    (error: { code: string }) => error.code,
  )

describe('a JSON body', () => {
  it('is read whole, in whatever pieces it comes', async () => {
    const request = body()
    const read = readBytes(request, 10, { timeout_ms: 60_000 })
    for (const piece of ['ab', '', 'cde']) request.write(piece)
    request.end()
    expect((await read).toString()).toBe('abcde')
  })
  it('that does not come in time is a 408, even when it drips on', async () => {
    const request = body({ 'content-length': '10' })
    const dripping = setInterval(() => request.write('x'), 1)
    expect(await codeOf(readBytes(request, 1_000_000, { timeout_ms: 20 }))).toBe('REQUEST_TIMEOUT')
    clearInterval(dripping)
    expect([request.listenerCount('data'), request.isPaused()]).toEqual([0, true])
  })
  it('that is too large is a 413, announced or not', async () => {
    expect(await codeOf(readBytes(body({ 'content-length': '11' }), 10))).toBe('PAYLOAD_TOO_LARGE')
    const request = body()
    const read = codeOf(readBytes(request, 10))
    request.write('x'.repeat(11))
    expect(await read).toBe('PAYLOAD_TOO_LARGE')
  })
  it('that breaks off is a 400', async () => {
    const request = body()
    const read = codeOf(readBytes(request, 10))
    request.emit('aborted')
    expect(await read).toBe('BAD_REQUEST')
  })
})

describe('what a JSON text holds', () => {
  const parse = (text: string) => {
    try {
      return parseJson(Buffer.from(text))
    } catch (error) {
      return (error as Error).message
    }
  }
  it.each([
    '{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}',
    String.raw`{"a:\"b":":\\","b":"\"","c":"{\"c\":1,\"c\":2}"}`,
    '[]',
    '"a:b"',
    '{"toString":1,"constructor":{"constructor":2}}',
  ])('is taken as it is: %s', (text) => {
    expect(parse(text)).toEqual(JSON.parse(text))
  })
  it.each([
    '{"a":1,"a":1}',
    '{"a":1,"b":{"c":[{"d":1,"d":2}]}}',
    String.raw`{"a":1,"\u0061":2}`,
    '{"":1,"":2}',
  ])('is refused when a key is given twice: %s', (text) => {
    expect(parse(text)).toBe('The JSON has an object with a key that is given twice.')
  })
})

describe('a JSON text that costs more than it weighs', () => {
  const parse = (text: string) => {
    try {
      return parseJson(Buffer.from(text))
    } catch (error) {
      return (error as Error).message
    }
  }
  it.each([
    ['numbers', `[${'1,'.repeat(500_000)}1]`],
    ['empty texts', `[${'"",'.repeat(300_000)}""]`],
    ['empty lists', `[${'[],'.repeat(300_000)}[]]`],
    ['colons', `{${':'.repeat(500_000)}}`],
    ['quotes', `{${'"'.repeat(500_000)}}`],
    ['keys', `{${Array.from({ length: 60_000 }, (_, at) => `"k${at}":1`).join()}}`],
  ])('is refused before it is made: %s', (_, text) => {
    expect(parse(text)).toBe('The JSON holds more than 30000 values.')
  })
  it('and so is what is nested deeply, whatever a text holds that looks like it', () => {
    expect(parse('['.repeat(500_000))).toBe('The JSON is nested deeper than 32 levels.')
    expect(parse(`{"a":"${'[,'.repeat(300_000)}"}`)).toEqual({ a: '[,'.repeat(300_000) })
    expect(parse(`{"a":"${String.raw`\"[`.repeat(200_000)}"}`)).toEqual({ a: '"['.repeat(200_000) })
    expect(parse(`{"a":"${'x'.repeat(1_000_000)}`)).toBe('The body is not valid JSON.')
  })
})

it('a text that is too long is not judged any further', () => {
  let judged = 0
  const Name = v.pipe(
    v.string(),
    v.maxLength(3),
    v.check(() => (judged += 1) > 0),
  )
  expect(() => parseBody(v.strictObject({ name: Name }), { name: ':'.repeat(1_000_000) })).toThrow(
    /at most 3/,
  )
  expect(judged).toBe(0)
})

describe('a Content-Type', () => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json; charset=utf8',
  ])('%s is read', (text) =>
    expect([isUtf8(text), isMediaType(text, ['application/json'])]).toEqual([true, true]),
  )
  it.each([
    'application/json; charset=utf-16',
    'application/json;charset=latin1',
    'application/json; charset=',
  ])('%s is refused', (text) => expect(isUtf8(text)).toBe(false))
})

describe('an upload', () => {
  it('that is refused before it is read ends by itself, and brings nothing down', async () => {
    const limited = limitStream(body(), 100, { idle_ms: 20 })
    await new Promise((resolve) => limited.once('close', resolve))
    expect(limited.errored).toMatchObject({ code: 'REQUEST_TIMEOUT' })
  })
  it('of which nothing comes for too long is a 408', async () => {
    const source = body()
    const limited = limitStream(source, 100, { idle_ms: 20 })
    source.write('x')
    expect(
      await codeOf(
        (async () => {
          for await (const _chunk of limited);
        })(),
      ),
    ).toBe('REQUEST_TIMEOUT')
  })
})
