import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** One request as the stand-in saw it. */
export interface SeenRequest {
  method: string
  path: string
  query: URLSearchParams
  body: string
}

/** Answers a request; what it leaves unanswered hangs. */
export type StandInAnswer = (request: SeenRequest, response: ServerResponse, raw: IncomingMessage) => void

/**
 * A real HTTP server on a unix socket that takes an engine's place: it can misbehave in ways that an engine
 * cannot be made to.
 */
export async function createEngineStandIn(answer: StandInAnswer) {
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-stand-in-'))
  const socket = join(folder, 'docker.sock')
  const seen: SeenRequest[] = []
  const server = createServer(async (raw, response) => {
    const url = new URL(raw.url ?? '/', 'http://engine')
    const is_archive = raw.headers['content-type'] === 'application/tar'
    if (is_archive) raw.resume()
    const body = is_archive ? '' : await text(raw).catch(() => '')
    const request = { method: raw.method ?? '', path: url.pathname, query: url.searchParams, body }
    seen.push(request)
    answer(request, response, raw)
  })
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  return {
    docker_host: `unix://${socket}`,
    seen,
    async close(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      rmSync(folder, { recursive: true })
    },
  }
}

/** Sends JSON with a status. */
export function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
