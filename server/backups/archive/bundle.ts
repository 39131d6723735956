import { pipeline, type Readable } from 'node:stream'
import type { Pack } from 'tar-stream'
import { ArchiveError } from './archive-error.ts'

/** One of several streams in an archive. */
export interface Section {
  /** Such as `app.json` or `volumes/data.tar`. */
  name: string
  bytes: AsyncIterable<Uint8Array>
}

/** A tar wants to know the length of a file before it begins, and a dump does not know its own: it comes in parts. */
const PART_BYTES = 1024 ** 2
const NAME = /^(?:app\.json|(?:volumes|databases)\/[a-z0-9_-]{1,63}\.[a-z0-9.]{1,16})$/
const PART = /^(.+)\/\d{8}$/

/** Everything that a pack holds so far. */
function* held(pack: Pack): Generator<Uint8Array> {
  for (;;) {
    const chunk = (pack as unknown as Readable).read() as Uint8Array | null
    if (chunk === null) return
    yield chunk
  }
}

/** Gathers a stream into pieces of at most this size; at least one, which may be empty. */
async function* pieces(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Uint8Array[] = []
  let size = 0
  let made = 0
  for await (const chunk of source) {
    parts.push(chunk)
    size += chunk.byteLength
    if (size < PART_BYTES) continue
    yield Buffer.concat(parts)
    made += 1
    parts = []
    size = 0
  }
  if (size > 0 || made === 0) yield Buffer.concat(parts)
}

/**
 * Several streams as one tar. Each is a folder of numbered parts, which `cat` puts together again; memory stays
 * the same for any size.
 */
export async function* packSections(sections: AsyncIterable<Section>): AsyncGenerator<Uint8Array> {
  const { pack: createPack } = await import('tar-stream')
  const pack = createPack()
  for await (const { name, bytes } of sections) {
    let number = 0
    for await (const part of pieces(bytes)) {
      pack.entry({ name: `${name}/${String(number).padStart(8, '0')}`, mode: 0o600, size: part.length }, part)
      number += 1
      yield* held(pack)
    }
  }
  pack.finalize()
  yield* held(pack)
}

/**
 * The streams of such a tar, one after the other: each is to be read before the next one is asked for. What does
 * not belong there is refused.
 */
export async function* readSections(source: AsyncIterable<Uint8Array>): AsyncGenerator<Section> {
  const { extract } = await import('tar-stream')
  const tar = extract()
  const reading = pipeline(source, tar, () => {})
  const entries = tar[Symbol.asyncIterator]()
  try {
    let entry = await entries.next()
    while (!entry.done) {
      const name = sectionOf(entry.value.header)
      let chunks = (entry.value as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
      /** Goes on with the next part where one ends. Whoever stops reading leaves the rest for us to pass over. */
      const next = async (): Promise<IteratorResult<Uint8Array>> => {
        for (;;) {
          if (entry.done || sectionOf(entry.value.header) !== name) return { done: true, value: undefined }
          const chunk = await chunks.next()
          if (!chunk.done) return chunk
          entry = await entries.next()
          if (!entry.done) chunks = (entry.value as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
        }
      }
      yield { name, bytes: { [Symbol.asyncIterator]: () => ({ next }) } }
      while (!(await next()).done);
    }
  } finally {
    reading.destroy()
  }
}

function sectionOf({ name, type }: { name: string; type?: string | null | undefined }): string {
  const section = PART.exec(name)?.[1] ?? ''
  if (type !== 'file' || !NAME.test(section))
    throw new ArchiveError('damaged', 'The archive holds something that is not part of an app.')
  return section
}
