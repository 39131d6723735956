import { request } from 'node:https'
import { connect, type TLSSocket } from 'node:tls'
import { connect as connectHttp2 } from 'node:http2'
import type { Address, Answer } from './client.ts'
import type { Seen } from './app.ts'

/** Sends one request over TLS; the certificate is looked at, not verified. */
export function askHttps(
  edge: Address,
  hostname: string,
  path = '/',
): Promise<Answer & { certificate_name: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        ...edge,
        path,
        servername: hostname,
        headers: { host: hostname },
        rejectUnauthorized: false,
        agent: false,
      },
      (response) => {
        const certificate_name = String((response.socket as TLSSocket).getPeerCertificate().subject?.CN)
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            certificate_name,
            get seen() {
              return JSON.parse(text) as Seen
            },
          }),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}

/**
 * Opens a TLS connection; resolves to the protocol and the certificate's name, or to the reason why there is
 * none.
 */
export function shakeHands(
  edge: Address,
  servername: string,
  options: object = {},
): Promise<
  { protocol: string | null; application: string | false | null; certificate_name: string } | string
> {
  return new Promise((resolve) => {
    const socket = connect({ ...edge, servername, rejectUnauthorized: false, ...options }, () => {
      resolve({
        protocol: socket.getProtocol(),
        application: socket.alpnProtocol,
        certificate_name: String(socket.getPeerCertificate().subject?.CN),
      })
      socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}

/** One GET over HTTP/2. */
export function askHttp2(edge: Address, hostname: string): Promise<{ status: number; seen: Seen }> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`https://${hostname}`, {
      createConnection: () =>
        connect({
          ...edge,
          servername: hostname,
          rejectUnauthorized: false,
          ALPNProtocols: ['h2'],
        }),
    })
    session.on('error', reject)
    const stream = session.request({ ':path': '/', ':authority': hostname })
    let [status, text] = [0, '']
    stream.on('response', (headers) => {
      status = Number(headers[':status'])
    })
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    stream.on('error', reject)
    stream.on('end', () => {
      session.close()
      resolve({ status, seen: JSON.parse(text) as Seen })
    })
  })
}

/**
 * Sends a body over HTTP/2 in these pieces, each once the one before has gone, and says nothing of its size
 * unless a header does.
 */
export function sendHttp2(
  edge: Address,
  hostname: string,
  pieces: readonly Buffer[],
  headers: Record<string, string> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`https://${hostname}`, {
      createConnection: () =>
        connect({ ...edge, servername: hostname, rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
    })
    session.on('error', reject)
    const stream = session.request({
      ':method': 'POST',
      ':path': '/',
      ':authority': hostname,
      ...headers,
    })
    const finish = (status: number) => {
      session.destroy()
      resolve(status)
    }
    stream.on('response', (answer) => finish(Number(answer[':status'])))
    // An edge that has answered may end the stream while the rest of the body is on its way.
    stream.on('error', () => undefined)
    const next = (index: number): void => {
      if (index === pieces.length) stream.end()
      else stream.write(pieces[index], () => setImmediate(next, index + 1))
    }
    next(0)
  })
}
