import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const TOKEN = 'good-token-0123456789-abcdef'

/** Cloudflare's API as far as it is used here: envelopes, codes and status as it documents them. */
export interface CloudflareApi {
  url: string
  /** TXT contents by name. */
  records: { id: string; name: string; content: string }[]
  /** Method, path and query of every request. */
  seen: string[]
  /** The next request gets this answer instead. */
  next(status: number, body: string, headers?: Record<string, string>): void
  close(): Promise<void>
}

const text = async (request: IncomingMessage) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

export async function startCloudflareApi(): Promise<CloudflareApi> {
  const records: CloudflareApi['records'] = []
  const seen: string[] = []
  let planned: { status: number; body: string; headers?: Record<string, string> } | undefined
  let count = 0
  const send = (
    response: ServerResponse,
    status: number,
    result: unknown,
    ...errors: [code: number, message: string][]
  ) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        success: errors.length === 0,
        errors: errors.map(([code, message]) => ({ code, message })),
        messages: [],
        result,
      }),
    )

  const server = createServer(
    (request, response) =>
      void (async () => {
        const url = new URL(request.url!, 'http://stand-in')
        const body = await text(request)
        seen.push(`${request.method} ${url.pathname}${url.search}`)
        if (planned) {
          const { status, headers, body: answer } = planned
          planned = undefined
          return response.writeHead(status, headers).end(answer)
        }
        if (request.headers.authorization !== `Bearer ${TOKEN}`)
          return send(response, 403, null, [9109, 'Invalid access token'])
        const path = url.pathname.replace('/client/v4', '')
        if (path === '/zones')
          return send(
            response,
            200,
            url.searchParams.get('name') === 'example.test'
              ? [{ id: 'zone1', name: 'example.test', status: 'active' }]
              : [],
          )
        const id = /^\/zones\/zone1\/dns_records(?:\/(\w+))?$/.exec(path)
        if (!id) return send(response, 404, null, [7003, 'Could not route to the path'])
        if (request.method === 'GET')
          return send(
            response,
            200,
            records
              .filter(({ name }) => name === url.searchParams.get('name'))
              .map((record) => ({ ...record, type: 'TXT', ttl: 60, proxied: false })),
          )
        if (request.method === 'DELETE') {
          const at = records.findIndex((record) => record.id === id[1])
          if (at < 0) return send(response, 404, null, [81044, 'Record does not exist.'])
          records.splice(at, 1)
          return send(response, 200, { id: id[1] })
        }
        const { type, name, content } = JSON.parse(body) as {
          type: string
          name: string
          content: string
        }
        if (type !== 'TXT')
          return send(response, 400, null, [9005, 'Content for A record must be a valid IPv4 address.'])
        if (records.some((record) => record.name === name && record.content === content))
          return send(response, 400, null, [81058, 'An identical record already exists.'])
        const record = { id: `record${(count += 1)}`, name, content }
        records.push(record)
        return send(response, 200, { ...record, type })
      })(),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/client/v4`,
    records,
    seen,
    next(status, body, headers) {
      planned = { status, body, ...(headers ? { headers } : {}) }
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
