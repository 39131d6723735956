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
