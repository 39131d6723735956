import { describe, expect, test } from 'vitest'
import { readFrames, readLines } from '#server/platform/engine/containers/logs'
import { readJsonLines } from '#server/platform/engine/json-lines'
import { cleanLine, createLineSplitter, LINE_LIMIT } from '#server/platform/engine/containers/log-lines'
import { clampMessage } from '#server/platform/engine/messages'

function split(...chunks: (string | Buffer)[]): string[] {
  const lines: string[] = []
  const splitter = createLineSplitter((line) => lines.push(line))
  for (const chunk of chunks) splitter.write(Buffer.from(chunk as string))
  splitter.end()
  return lines
}

async function* chunked(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let offset = 0; offset < bytes.length; offset += size) yield bytes.subarray(offset, offset + size)
}

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of source) all.push(one)
  return all
}

describe('lines', () => {
  test.each([
    ['a\nb\n', ['a', 'b']],
    ['a\r\nb', ['a', 'b']],
    ['a\n\nb\n', ['a', '', 'b']],
    ['1%\r50%\r100%\n', ['100%']],
    ['50%\r', ['50%']],
    ['', []],
    ['\n', ['']],
    ['long\rx\n', ['x']],
  ])('of %j are %j', (text, lines) => {
    expect(split(text)).toEqual(lines)
    expect(split(...text)).toEqual(lines)
  })

  test('keep characters that are spread over chunks', () => {
    const bytes = Buffer.from('grün 你好 👋\n')
    for (let size = 1; size < 5; size++)
      expect(
        split(
          ...Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
            bytes.subarray(index * size, (index + 1) * size),
          ),
        ),
      ).toEqual(['grün 你好 👋'])
  })

  test('without an end are cut at the limit, and the next line is whole again', () => {
    const [long, next] = split('x'.repeat(LINE_LIMIT), 'y'.repeat(1_000_000), '\nnext\n')
    expect(long).toBe(`${'x'.repeat(LINE_LIMIT)} … [line truncated]`)
    expect(next).toBe('next')
  })

  test('keep colours and lose every other terminal sequence and control character', () => {
    expect(cleanLine('\u001b[1;32mok\u001b[0m')).toBe('\u001b[1;32mok\u001b[0m')
    expect(
      cleanLine(
        'a\u001b[2J\u001b[1;1Hb\u001b]0;title\u0007c\u001b]8;;http://evil\u001b\\link\u001b]8;;\u001b\\d\u0000\u0008e\u009b31mf\u001b',
      ),
    ).toBe('abclinkde31mf')
    expect(cleanLine('tab\there')).toBe('tab\there')
  })

  test('for sentences are one line without control characters, bounded', () => {
    expect(clampMessage('a\nb\u001b[31m\u202ec')).toBe('a b [31m c')
    expect(clampMessage('x'.repeat(1000))).toHaveLength(300)
  })
})

describe('frames of a log', () => {
  const frame = (stream: number, text: string) => {
    const body = Buffer.from(text)
    const head = Buffer.alloc(8)
    head[0] = stream
    head.writeUInt32BE(body.length, 4)
    return Buffer.concat([head, body])
  }
  const at = (second: number) => `2026-01-01T00:00:0${second}.123456789Z`

  test.each([1, 3, 7, 8, 9, 1000])('are read in chunks of %i bytes', async (size) => {
    const bytes = Buffer.concat([
      frame(1, `${at(1)} grün\n`),
      frame(2, `${at(2)} oops\n`),
      frame(1, `${at(3)} \n`),
      frame(1, `${at(4)} no end`),
    ])
    expect(await collect(readLines(readFrames(chunked(bytes, size))))).toEqual([
      { at: at(1), stream: 'stdout', text: 'grün' },
      { at: at(2), stream: 'stderr', text: 'oops' },
      { at: at(3), stream: 'stdout', text: '' },
      { at: at(4), stream: 'stdout', text: 'no end' },
    ])
  })

  test('that make up one long line become one line with the time of its beginning, also when the streams mix', async () => {
    const bytes = Buffer.concat([
      frame(1, `${at(1)} begin `),
      frame(2, `${at(2)} between\n`),
      frame(1, `${at(3)} end\n`),
    ])
    expect(await collect(readLines(readFrames(chunked(bytes, 50))))).toEqual([
      { at: at(2), stream: 'stderr', text: 'between' },
      { at: at(1), stream: 'stdout', text: 'begin end' },
    ])
  })

  test('that never end cost bounded memory', async () => {
    async function* endless() {
      for (let index = 0; index < 5_000; index++) yield frame(1, `${at(1)} ${'x'.repeat(16_000)}`)
    }
    const [line] = await collect(readLines(readFrames(endless())))
    expect(line!.text.length).toBeLessThan(LINE_LIMIT + 50)
  })

  test('of something else are refused', async () => {
    await expect(
      collect(readFrames(chunked(Buffer.from('plain text, no frames'), 100))),
    ).rejects.toMatchObject({
      code: 'failed',
    })
  })
})

describe('JSON lines', () => {
  test('are read over chunk borders and with the last newline missing', async () => {
    const bytes = Buffer.from('{"a":"ü"}\n\r\n{"b":2}\n{"c":3}')
    for (const size of [1, 2, 5, 100])
      expect(await collect(readJsonLines(chunked(bytes, size)))).toEqual([{ a: 'ü' }, { b: 2 }, { c: 3 }])
  })

  test('that break off are an error of the engine', async () => {
    await expect(collect(readJsonLines(chunked(Buffer.from('{"a":1}\n{"b'), 100)))).rejects.toMatchObject({
      code: 'unavailable',
    })
  })
})
