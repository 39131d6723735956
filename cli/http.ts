import { type ClientRequest, request as requestHttp } from 'node:http'

/** Time without a byte after which a call is given up: answers of some calls take long. */
const SILENT_MS = 300_000
/** A host that drops packets is told from one that is slow; the kernel would try for two minutes. */
const CONNECT_MS = 10_000

export interface Question {
  method?: string
  url: string
  headers?: Record<string, string>
  body?: string
  /** Time that the whole call has. */
  within_ms?: number
  /** Gives it up, however far it is. */
  signal?: AbortSignal
}
export interface Answer {
  status: number
  type: string
  text: string
  /** Where a redirect leads. */
  location?: string
}

/** Gives a call up after some time, unless it is told before that this does not matter any more. */
function limit(asked: ClientRequest, ms: number, why: string): () => void {
  const timer = setTimeout(() => asked.destroy(new Error(why)), ms)
  const clear = () => clearTimeout(timer)
  asked.once('close', clear)
  return clear
}

/**
 * One call over HTTP. Not `fetch`: that Node loads 50 ms of code for it, more than most commands take in all. No
 * redirect is followed, which would take credentials elsewhere.
 */
export async function askOnce({
  method = 'GET',
  url,
  headers,
  body,
  within_ms,
  signal,
}: Question): Promise<Answer> {
  const is_safe = url.startsWith('https:')
  const request = is_safe ? (await import('node:https')).request : requestHttp
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = {
      method,
      headers: { ...headers, ...length },
      agent: false,
      ...(signal ? { signal } : {}),
    }
    const asked = request(url, options, (response) => {
      const pieces: Buffer[] = []
      response
        .on('data', (piece: Buffer) => pieces.push(piece))
        .once('error', reject)
        .once('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            type: response.headers['content-type'] ?? '',
            text: Buffer.concat(pieces).toString('utf8'),
            ...(response.headers.location ? { location: response.headers.location } : {}),
          }),
        )
    })
    asked.once('error', reject)
    asked.setTimeout(SILENT_MS, () => asked.destroy(new Error('no answer in time')))
    const connected = limit(asked, CONNECT_MS, `no connection within ${CONNECT_MS / 1000} s`)
    asked.once('socket', (socket) => socket.once(is_safe ? 'secureConnect' : 'connect', connected))
    if (within_ms !== undefined) limit(asked, within_ms, `no answer within ${within_ms / 1000} s`)
    asked.end(body)
  })
}
