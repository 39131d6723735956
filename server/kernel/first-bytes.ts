/** The first bytes of something that comes in pieces, at most so many; the rest is not waited for. */
export async function firstBytes(
  source: AsyncIterable<Uint8Array>,
  most: number,
): Promise<{ bytes: Buffer; truncated: boolean }> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size > most) break
  }
  return { bytes: Buffer.concat(chunks).subarray(0, most), truncated: size > most }
}
