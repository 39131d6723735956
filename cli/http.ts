import { request as requestHttp } from 'node:http'

const SILENT_MS = 300_000

export interface Question {
  method?: string
  url: string
  headers?: Record<string, string>
  body?: string
  /** Time without a byte after which it is given up. */
  silent_ms?: number
  /** Gives it up, however far it is. */
  signal?: AbortSignal
}
export interface Answer {
  status: number
  type: string
  text: string
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
  silent_ms = SILENT_MS,
  signal,
}: Question): Promise<Answer> {
  const request = url.startsWith('https:') ? (await import('node:https')).request : requestHttp
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
          }),
        )
    })
    asked.once('error', reject)
    asked.setTimeout(silent_ms, () => asked.destroy(new Error('no answer in time')))
    asked.end(body)
  })
}
