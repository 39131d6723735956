/** A complete HTTP/1.1 answer. */
export interface HttpResponse {
  status: number
  head: string
  body: string
  close: boolean
}

const HEAD_END = Buffer.from('\r\n\r\n')

/**
 * Reads exactly one answer. More bytes than the answer says is `malformed`: nobody asked for them, so that a
 * proxy which mixes up answers is caught.
 */
export function readResponse(bytes: Buffer): HttpResponse | 'incomplete' | 'malformed' {
  const head_end = bytes.indexOf(HEAD_END)
  if (head_end < 0) return 'incomplete'
  const head = bytes.toString('latin1', 0, head_end)
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? Number.NaN)
  if (Number.isNaN(status)) return 'malformed'
  const close = /^connection:\s*close\s*$/im.test(head)
  const rest = bytes.subarray(head_end + 4)
  if (status === 204 || status === 304)
    return rest.length === 0 ? { status, head, body: '', close } : 'malformed'
  const length = /^content-length:\s*(\d+)\s*$/im.exec(head)?.[1]
  if (length !== undefined) {
    if (rest.length < Number(length)) return 'incomplete'
    return rest.length > Number(length) ? 'malformed' : { status, head, body: rest.toString('latin1'), close }
  }
  if (!/^transfer-encoding:\s*chunked\s*$/im.test(head)) return 'malformed'
  const body = readChunks(rest)
  return typeof body === 'string'
    ? (body as 'incomplete' | 'malformed')
    : { status, head, body: body.text, close }
}

function readChunks(bytes: Buffer): { text: string } | 'incomplete' | 'malformed' {
  let text = ''
  let at = 0
  for (;;) {
    const line_end = bytes.indexOf('\r\n', at)
    if (line_end < 0) return 'incomplete'
    const line = bytes.toString('latin1', at, line_end)
    if (!/^[0-9a-f]+$/i.test(line)) return 'malformed'
    const size = Number.parseInt(line, 16)
    const next = line_end + 2 + size + 2
    if (bytes.length < next) return 'incomplete'
    if (bytes.toString('latin1', next - 2, next) !== '\r\n') return 'malformed'
    if (size === 0) return bytes.length === next ? { text } : 'malformed'
    text += bytes.toString('latin1', line_end + 2, next - 2)
    at = next
  }
}
