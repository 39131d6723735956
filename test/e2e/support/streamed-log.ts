import type { Page } from 'playwright-core'

/** What the page has been told, by `pretend` below. */
interface Pretence {
  sockets: WebSocket[]
  hear(data: object): void
}

/**
 * Lines that a page hears as if the server sent them: the page cannot tell, and no app prints as fast. Call it
 * before the page is opened.
 * @param channel of the log whose lines they are.
 */
export async function pretendToStream(page: Page, channel: string) {
  await page.addInitScript(() => {
    const sockets: WebSocket[] = []
    window.WebSocket = class extends WebSocket {
      constructor(url: string | URL) {
        super(url)
        sockets.push(this)
      }
    }
    const hear = (data: object) => sockets.at(-1)!.onmessage!({ data: JSON.stringify(data) } as MessageEvent)
    Object.assign(window, { sockets, hear })
  })
  const tools = await page.context().newCDPSession(page)
  return {
    /** Connections that the page has opened. */
    connections: () => page.evaluate(() => (window as unknown as Pretence).sockets.length),
    /** Tells the page of lines with these numbers, 2,000 at a time. */
    lines: (from: number, count: number) =>
      page.evaluate(
        async ([channel, from, count]) => {
          const { hear } = window as unknown as Pretence
          const at = new Date().toISOString()
          for (let seq = from; seq < from + count; seq += 1) {
            const data = { seq, at, source: 'build', stream: 'stdout', text: `streamed ${seq}` }
            hear({ type: 'log', channel, cursor: `0.${seq}`, data })
            if (seq % 2000 === 0) await new Promise((next) => setTimeout(next))
          }
        },
        [channel, from, count] as const,
      ),
    /** Memory that the page cannot do without, in MiB. */
    async heapMib() {
      await tools.send('HeapProfiler.collectGarbage')
      return (await tools.send('Runtime.getHeapUsage')).usedSize / 1024 / 1024
    },
  }
}
