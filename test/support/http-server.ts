import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import {
  createApp,
  createRouter,
  defineEventHandler,
  type EventHandler,
  lazyEventHandler,
  type RouterMethod,
  toNodeListener,
} from 'h3'
import { createEntrance, answerError } from '#server/http/entrance'

/** A route to mount; `load` runs at its first request, as in the built server. */
export interface MountedRoute {
  path: string
  method?: string
  load(): Promise<{ default: EventHandler }> | { default: EventHandler }
}

export interface Answer<T = any> {
  status: number
  headers: Headers
  /** Parsed JSON, or the text of anything else; undefined when empty. */
  body: T
  text: string
}
export interface SendOptions {
  body?: unknown
  headers?: Record<string, string>
  /** Sent as it is, without making JSON of it. */
  raw?: string | Buffer
}
export interface TestServer {
  url: string
  send<T = any>(method: string, path: string, options?: SendOptions): Promise<Answer<T>>
  /** Sends a path that `fetch` would tidy up, byte for byte. */
  sendRaw(
    method: string,
    path: string,
    headers?: Record<string, string>,
  ): Promise<{
    status: number
    headers: Record<string, string | string[] | undefined>
    text: string
  }>
  /** Writes bytes to the socket and resolves with everything that came back before the server closed it. */
  speak(bytes: string): Promise<string>
  close(): Promise<void>
}

function rawBody(raw: string | Buffer | undefined) {
  return Buffer.isBuffer(raw) ? new Uint8Array(raw) : raw
}

/** Serves routes on a local port through the same entrance, router and error mapping as the built server. */
export async function startTestServer(
  routes: readonly MountedRoute[],
  services: unknown,
): Promise<TestServer> {
  const app = createApp({ onError: (error, event) => answerError(error, event) })
  app.use(
    defineEventHandler((event) => {
      event.context.services = services
    }),
  )
  const served = routes
    .filter((route) => route.path.startsWith('/api/') && route.method)
    .map((route) => ({ path: route.path, method: route.method! }))
  const entrance = createEntrance(served)
  app.use(defineEventHandler((event) => entrance(event)))
  const router = createRouter({ preemptive: true })
  for (const route of routes) {
    const serve = lazyEventHandler(async () => (await route.load()).default)
    for (const method of methodsOf(route)) router.use(route.path, serve, method)
  }
  app.use(router.handler)
  const server = createServer(toNodeListener(app))
  // A test that works for seconds without a pause would find its kept connection closed, for client and
  // server share one event loop.
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    ...senders(port),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** The build gives every GET its HEAD; so does this. */
function methodsOf(route: MountedRoute): (RouterMethod | undefined)[] {
  if (route.method === 'get') return ['get', 'head']
  return [route.method as RouterMethod | undefined]
}

function senders(port: number): Pick<TestServer, 'send' | 'sendRaw' | 'speak'> {
  return {
    async send(method, path, options = {}) {
      const json = options.body !== undefined
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { ...(json ? { 'content-type': 'application/json' } : {}), ...options.headers },
        body: json ? JSON.stringify(options.body) : rawBody(options.raw),
        redirect: 'manual',
      })
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.includes('json') && text !== ''
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: isJson ? JSON.parse(text) : text || undefined,
      }
    },
    sendRaw: (method, path, headers = {}) =>
      new Promise((resolve, reject) => {
        const request = httpRequest(
          { host: '127.0.0.1', port, method, path, headers, agent: false },
          (response) => {
            let text = ''
            response
              .setEncoding('utf8')
              .on('data', (part: string) => (text += part))
              .on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }))
          },
        )
        request.on('error', reject).end()
      }),
    speak: (bytes) =>
      new Promise((resolve) => {
        let text = ''
        const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
        socket
          .setEncoding('utf8')
          .on('data', (part: string) => (text += part))
          .on('error', () => undefined)
          .on('close', () => resolve(text))
      }),
  }
}
