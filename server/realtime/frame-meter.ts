const MOST_HEADER_BYTES = 14
/** Bytes behind the first two that hold the size of a frame: by RFC 6455, section 5.2. */
const sizeBytes = (size: number): number => ({ 126: 2, 127: 8 })[size] ?? 0

/** Whether a frame is a part of a message, and not one that says something of the connection. */
const isOfMessage = (first: number): boolean => (first & 0x0f) < 8
const isLast = (first: number): boolean => (first & 0x80) !== 0
/** A piece in which no frame begins is one as well where it is smaller: the library keeps each until the frame is whole. */
const SMALL_BYTES = 512

/** Looks at what a client sends, before anybody reads it. */
export interface FrameMeter {
  /** How many frames a piece counts as. */
  count(piece: Uint8Array): number
  /** Whether there is more to come of a frame, or of a message in several. */
  readonly is_open: boolean
}

/**
 * Counts the frames that begin in each piece of what a client sends; only their headers are looked at. The
 * library tells of whole messages, so that frames which are none, pings and empty parts, would cost the client
 * nothing, nor would those in pieces of one byte.
 */
export function createFrameMeter(): FrameMeter {
  let has_parts = false
  const begin = (first: number): void => {
    if (isOfMessage(first)) has_parts = !isLast(first)
  }
  const header = Buffer.alloc(MOST_HEADER_BYTES)
  let known = 0
  let payload = 0
  const count = (piece: Uint8Array): number => {
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
        begin(piece[at]!)
        at += (piece[at + 1]! & 0x80) === 0 ? 2 : 6
        payload = size
        continue
      }
      header[known] = piece[at]!
      known += 1
      at += 1
      if (known === 1) {
        frames += 1
        begin(header[0]!)
      }
      const told = header[1]! & 0x7f
      const masked = (header[1]! & 0x80) === 0 ? 0 : 4
      if (known < 2 || known < 2 + sizeBytes(told) + masked) continue
      payload = told
      if (told === 126) payload = header.readUInt16BE(2)
      if (told === 127) payload = Number(header.readBigUInt64BE(2))
      known = 0
    }
    return frames === 0 && piece.length < SMALL_BYTES ? 1 : frames
  }
  return {
    count,
    get is_open() {
      return has_parts || known > 0 || payload > 0
    },
  }
}
