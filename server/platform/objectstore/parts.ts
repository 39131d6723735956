/** A part of a stream that is held in memory, so that it can be sent again. */
export interface Part {
  bytes: Uint8Array
  is_last: boolean
}

/**
 * Cuts a stream into parts of one size; the last one holds the rest, and an empty stream is one empty part.
 * Two buffers take turns: a part is valid until the one after the next is asked for.
 */
export async function* cutParts(source: AsyncIterable<Uint8Array>, size_bytes: number): AsyncGenerator<Part> {
  const buffers = [Buffer.allocUnsafe(size_bytes), Buffer.allocUnsafe(size_bytes)] as const
  let turn = 0
  let filled = 0
  for await (const chunk of source) {
    for (let from = 0; from < chunk.byteLength; ) {
      if (filled === size_bytes) {
        yield { bytes: buffers[turn % 2]!, is_last: false }
        turn += 1
        filled = 0
      }
      const piece = chunk.subarray(from, from + size_bytes - filled)
      buffers[turn % 2]!.set(piece, filled)
      filled += piece.byteLength
      from += piece.byteLength
    }
  }
  yield { bytes: buffers[turn % 2]!.subarray(0, filled), is_last: true }
}
