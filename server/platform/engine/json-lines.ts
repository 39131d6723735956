import { StringDecoder } from 'node:string_decoder'
import { EngineError } from './engine.ts'
import { tooLarge } from './failures.ts'

/** One object of a progress or event stream is never larger than this. */
const OBJECT_LIMIT = 16 * 1024 * 1024

/** Reads a stream of JSON objects, one per line, as builds, pulls and events are sent. */
export async function* readJsonLines<T>(source: AsyncIterable<Buffer>): AsyncGenerator<T> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for await (const chunk of source) {
    rest += decoder.write(chunk)
    if (rest.length > OBJECT_LIMIT) throw tooLarge()
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield parse<T>(line)
  }
  if (rest.trim() !== '') yield parse<T>(rest)
}

function parse<T>(line: string): T {
  try {
    return JSON.parse(line) as T
  } catch (error) {
    throw new EngineError(
      'unavailable',
      'The container engine stopped in the middle of its answer.',
      'Check that the engine runs, then try again.',
      { cause: error },
    )
  }
}
