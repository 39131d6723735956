import { orThrow } from '#server/kernel/or-throw'
import { connect } from 'node:net'
import { vi } from 'vitest'

export interface Frame {
  type: string
  channel: string | null
  cursor: string | null
  data: any
}
/** A WebSocket client that keeps what it hears. */
export interface Listener {
  socket: WebSocket
  heard: Frame[]
  /** Code that the connection ended with. */
  closed: Promise<number>
  say(message: unknown): void
  /** The first frame that fits; waits until it is there. */
  until(fits: (frame: Frame) => boolean, limit_ms?: number): Promise<Frame>
}

/** Opens a WebSocket with these headers; fails when it is refused. */
export async function listen(url: string, headers: Record<string, string>): Promise<Listener> {
  const heard: Frame[] = []
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/api/ws`, {
    headers,
  } as unknown as string[])
  const closed = new Promise<number>((resolve) =>
    socket.addEventListener('close', (event) => resolve(event.code)),
  )
  socket.addEventListener('message', (event) => heard.push(JSON.parse(String(event.data)) as Frame))
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error('The WebSocket was refused.')))
  })
  return {
    socket,
    heard,
    closed,
    say: (message) => socket.send(JSON.stringify(message)),
    until: (fits, timeout = 60_000) =>
      vi.waitFor(
        () =>
          orThrow(heard.find(fits), () => new Error(`heard only ${JSON.stringify(heard).slice(0, 1000)}`)),
        { interval: 10, timeout },
      ),
  }
}

/** Sends these bytes and answers everything that comes back until the server ends the connection. */
export const speak = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket
      .setEncoding('latin1')
      .on('data', (part: string) => {
        text += part
      })
      .on('error', () => undefined)
      .on('close', () => resolve(text))
  })

/** The answer to an upgrade that is refused. */
export const upgrade = (port: number, path: string, headers: Record<string, string> = {}): Promise<string> =>
  speak(
    port,
    [
      `GET ${path} HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      '',
      '',
    ].join('\r\n'),
  )
