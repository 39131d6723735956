import { vi } from 'vitest'

/** A socket whose other side is the test. */
export class FakeSocket {
  static readonly OPEN = 1
  static all: FakeSocket[] = []
  readyState = 0
  sent: { type: string; channel?: string; after?: string }[] = []
  onopen?: () => void
  onmessage?: (event: { data: string }) => void
  onclose?: (event: { code: number }) => void
  constructor() {
    FakeSocket.all.push(this)
  }
  send(text: string) {
    this.sent.push(JSON.parse(text))
  }
  close() {
    this.readyState = 3
    this.onclose?.({ code: 1006 })
  }
  open() {
    this.readyState = 1
    this.onopen?.()
  }
  tell(channel: string, cursor: string, type = 'app.updated', data: unknown = {}) {
    this.onmessage?.({ data: JSON.stringify({ type, channel, cursor, data }) })
  }
}
export const newest = () => FakeSocket.all.at(-1)!

/** Stands in for what the live connection looks at of a page, once its modules are loaded. */
export function standInForPage(): void {
  FakeSocket.all = []
  const target = { addEventListener: () => undefined, removeEventListener: () => undefined }
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('location', { protocol: 'http:', host: 'localhost:9000' })
  vi.stubGlobal('document', { ...target, visibilityState: 'visible' })
  vi.stubGlobal('window', target)
}
