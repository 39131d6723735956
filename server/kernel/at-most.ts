/**
 * Lets a stream through that is not longer than it may be; throws once it goes on.
 * @param fault what is thrown then.
 */
export async function* atMost(
  most_bytes: number,
  source: AsyncIterable<Uint8Array>,
  fault: () => Error,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > most_bytes) throw fault()
    yield chunk
  }
}

/**
 * Lets a stream through that has exactly so many bytes; throws where it ends before them, or goes on after them.
 * @param fault what is thrown then.
 */
export async function* exactly(
  bytes: number,
  source: AsyncIterable<Uint8Array>,
  fault: () => Error,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of atMost(bytes, source, fault)) {
    size += chunk.byteLength
    yield chunk
  }
  if (size < bytes) throw fault()
}
