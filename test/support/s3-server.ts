import { createHash, createHmac, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request as forward, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A real S3 server with multipart uploads (s3rver). It does not check signatures of version 4, so a door of
 * the tests in front of it does, for every request, together with the hash of the body.
 */
export interface S3Server {
  endpoint: string
  bucket: string
  access_key_id: string
  secret_access_key: string
  /** Breaks the connection of requests that match: an upload before, a download in the middle of the answer. */
  breakNext(matches: (method: string, url: string) => boolean, times?: number): void
  /** Answers requests that match with this error of S3. */
  failNext(matches: (method: string, url: string) => boolean, status: number, code: string): void
  /** Leaves requests that match without an answer until the function that it returns is called. */
  silence(matches: (method: string, url: string) => boolean): () => void
  /** Requests that arrived, as `PUT /bucket/key?…`. */
  requests: string[]
  close(): Promise<void>
}
interface Fault {
  matches: (method: string, url: string) => boolean
  times: number
  answer?: { status: number; code: string }
}
interface S3rver {
  run(): Promise<AddressInfo>
  close(): Promise<void>
}

const KEY_ID = 'S3RVER'
const SECRET = `s3-secret-${randomBytes(16).toString('hex')}`
const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const escape = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

/** Whether the signature is the one that the service computes; written from its documentation. */
function isSigned({ method = '', url = '', headers }: IncomingMessage, body: Buffer): boolean {
  const [, scope = '', names = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? []
  const [key_id, day = '', region = '', service = '', end] = scope.split('/')
  if (key_id !== KEY_ID || service !== 's3' || end !== 'aws4_request') return false
  if (headers['x-amz-content-sha256'] !== sha256(body)) return false
  if (!names.split(';').includes('host') || !names.split(';').includes('x-amz-content-sha256')) return false
  const { pathname, searchParams } = new URL(url, 'http://any')
  const query = [...searchParams]
    .map(([name, value]) => `${escape(name)}=${escape(value)}`)
    .sort()
    .join('&')
  const canonical = [
    method,
    pathname,
    query,
    ...names.split(';').map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    names,
    headers['x-amz-content-sha256'],
  ].join('\n')
  const date = String(headers['x-amz-date'])
  const text = ['AWS4-HMAC-SHA256', date, `${day}/${region}/s3/aws4_request`, sha256(canonical)].join('\n')
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${SECRET}`)
  return hmac(key, text).toString('hex') === signature
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' })
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`)
}

export async function startS3Server(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-s3-'))
  const Rver = createRequire(import.meta.url)('s3rver') as new (options: object) => S3rver
  const inner = new Rver({
    directory,
    address: '127.0.0.1',
    port: 0,
    silent: true,
    vhostBuckets: false,
    configureBuckets: [{ name: 'backups', configs: [] }],
  })
  const { port } = await inner.run()
  const requests: string[] = []
  const faults: Fault[] = []
  let silent: Fault['matches'] | undefined
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    requests.push(`${method} ${url}`)
    if (silent?.(method, url)) return
    const fault = faults.find((one) => one.times > 0 && one.matches(method, url))
    if (fault) fault.times -= 1
    if (fault && !fault.answer && method !== 'GET') return void request.socket.destroy()
    const chunks: Buffer[] = []
    // A client that goes away in the middle gets no answer.
    const whole = await request
      .forEach((chunk: Buffer) => void chunks.push(chunk))
      .then(
        () => true,
        () => false,
      )
    if (!whole) return
    const body = Buffer.concat(chunks)
    if (fault?.answer) return refuse(response, fault.answer.status, fault.answer.code)
    if (!isSigned(request, body)) return refuse(response, 403, 'SignatureDoesNotMatch')
    const { authorization: _, connection: __, ...rest } = headers
    const options = { host: '127.0.0.1', port, method, path: url, headers: rest, agent: false } as const
    forward(options, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      if (fault) answer.once('data', () => setImmediate(() => request.socket.destroy()))
      answer.pipe(response)
    }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bucket: 'backups',
    access_key_id: KEY_ID,
    secret_access_key: SECRET,
    requests,
    breakNext: (matches, times = 1) => faults.push({ matches, times }),
    failNext: (matches, status, code) => faults.push({ matches, times: 1, answer: { status, code } }),
    silence(matches) {
      silent = matches
      return () => {
        silent = undefined
        server.closeAllConnections()
      }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      // It waits for idle connections of its own; nothing of it outlives the test.
      void inner.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
