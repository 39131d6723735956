import { ApiError } from '#server/kernel/errors'

/** The part of a body that is sent: first and last byte. */
export interface ByteWindow {
  start: number
  end: number
  partial: boolean
}

/** What a request says of the part that it wants: its `Range` and `If-Range` headers, as they were sent. */
export interface WantedRange {
  range?: string | undefined
  if_range?: string | undefined
}

/**
 * Reads a `Range` header with one range of bytes. What is not one is ignored, as HTTP wants it, and so is a part
 * of what is no longer the same by its tag; one that begins behind the end is refused.
 */
export function parseRange({ range: header, if_range }: WantedRange, size: number, tag: string): ByteWindow {
  const whole = { start: 0, end: Math.max(0, size - 1), partial: false }
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '')
  if (!match || (match[1] === '' && match[2] === '')) return whole
  if (if_range !== undefined && if_range.trim() !== tag) return whole
  const [, first = '', last = ''] = match
  if (first === '' && Number(last) > 0 && size > 0) {
    const start = Math.max(0, size - Number(last))
    return { start, end: size - 1, partial: true }
  }
  const start = first === '' ? size : Number(first)
  if (start >= size)
    throw new ApiError(
      'RANGE_NOT_SATISFIABLE',
      `The Range begins behind the end of the archive, which has ${size} bytes.`,
      undefined,
      undefined,
      { 'Content-Range': `bytes */${size}` },
    )
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  return end < start ? whole : { start, end, partial: true }
}
