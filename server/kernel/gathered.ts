/** Bytes that come in pieces. */
export interface Gathered {
  add(piece: Uint8Array): void
  /** All of them so far. */
  bytes(): Buffer
}

const FIRST_BYTES = 4096

/**
 * Gathers bytes that somebody else sends in as many pieces as they like. Each piece is copied: one of a single byte is
 * an object of eight hundred, so that kept pieces are no matter of how much was sent.
 */
export function gathered(): Gathered {
  let block = Buffer.alloc(0)
  let size = 0
  return {
    add(piece) {
      if (size + piece.length > block.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(size + piece.length, 2 * block.length, FIRST_BYTES))
        block.copy(larger, 0, 0, size)
        block = larger
      }
      block.set(piece, size)
      size += piece.length
    },
    bytes: () => block.subarray(0, size),
  }
}
