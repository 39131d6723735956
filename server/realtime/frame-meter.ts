const MOST_HEADER_BYTES = 14
/** Bytes behind the first two that hold the size of a frame: by RFC 6455, section 5.2. */
const sizeBytes = (size: number): number => ({ 126: 2, 127: 8 })[size] ?? 0

/**
 * Counts the frames that begin in each piece of what a client sends; only their headers are looked at. The
 * library tells of whole messages, so that frames which are none, pings and empty parts, would cost the client
 * nothing.
 */
export function createFrameMeter(): (piece: Uint8Array) => number {
  const header = Buffer.alloc(MOST_HEADER_BYTES)
  let known = 0
  let payload = 0
  return (piece) => {
    let frames = 0
    for (let at = 0; at < piece.length; ) {
      if (payload > 0) {
        const part = Math.min(payload, piece.length - at)
        payload -= part
        at += part
        continue
      }
      const size = piece[at + 1]! & 0x7f
      if (known === 0 && size < 126 && piece.length - at >= MOST_HEADER_BYTES) {
        // Nearly all frames are short ones whose header is there as a whole.
        frames += 1
        at += (piece[at + 1]! & 0x80) === 0 ? 2 : 6
        payload = size
        continue
      }
      header[known] = piece[at]!
      known += 1
      at += 1
      if (known === 1) frames += 1
      const told = header[1]! & 0x7f
      const masked = (header[1]! & 0x80) === 0 ? 0 : 4
      if (known < 2 || known < 2 + sizeBytes(told) + masked) continue
      payload = told
      if (told === 126) payload = header.readUInt16BE(2)
      if (told === 127) payload = Number(header.readBigUInt64BE(2))
      known = 0
    }
    return frames
  }
}
