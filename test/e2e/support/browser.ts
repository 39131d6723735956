import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import type { Portreeve } from '#test/support/portreeve'

/** Keeps Debian's Chromium from asking for anything but what is tested. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
/** What Chromium says of a request that it gave up since an interface came or went. */
export const NETWORK_CHANGED = 'ERR_NETWORK_CHANGED'
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: QUIET })

export interface Look {
  width: number
  height: number
  scheme: 'light' | 'dark'
}
/** A browser of one person, with what went wrong in it. */
export interface Visitor {
  context: BrowserContext
  page: Page
  /** Console errors, uncaught errors, refused styles and scripts, requests to other hosts. */
  faults: string[]
  /** Opens a page of the dashboard and waits until it has all it shows. */
  open(path: string): Promise<void>
  /** Serious and critical findings of axe on the page that is open. */
  barriers(): Promise<string[]>
}

/** Opens a browser window; with a session when a cookie is given. */
export async function visit(
  browser: Browser,
  portreeve: Portreeve,
  look: Look = { width: 1280, height: 800, scheme: 'light' },
  cookie?: string,
): Promise<Visitor> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.scheme,
    // axe has to be put into the page, which the policy of the pages would refuse; violations are still told.
    bypassCSP: false,
  })
  if (cookie) await context.addCookies([{ name: 'session', value: cookie, url: portreeve.url }])
  const page = await context.newPage()
  const faults: string[] = []
  const own = new URL(portreeve.url).host
  let tellGivenUp = () => {}
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()} (${message.location().url})`)
    if (message.text().includes(NETWORK_CHANGED)) tellGivenUp()
  })
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`))
  page.on('request', (request) => {
    const { host, protocol } = new URL(request.url())
    if (protocol.startsWith('http') && host !== own) faults.push(`foreign request: ${request.url()}`)
  })
  const settled = () =>
    page.waitForFunction(
      () =>
        document.querySelector('h1, h2, [role="alert"]') !== null &&
        document.querySelector('.animate-pulse') === null,
      undefined,
      { timeout: 60_000 },
    )
  return {
    context,
    page,
    faults,
    async open(path) {
      for (;;) {
        const before = faults.length
        const isGivenUp = () => faults.slice(before).some((fault) => fault.includes(NETWORK_CHANGED))
        // A page may wait for what was given up.
        const given_up = new Promise<void>((resolve) => (tellGivenUp = resolve))
        await page.goto(portreeve.url + path)
        if (!isGivenUp()) await Promise.race([settled(), given_up])
        if (!isGivenUp()) return
        // A container of the tests came or went meanwhile, and Chromium gave its requests up.
        faults.length = before
      }
    },
    async barriers() {
      // Evaluated by the browser's debugger, which stands above the policy of the page.
      await page.evaluate(AXE)
      const found = await page.evaluate(async () => {
        const axe = (window as unknown as { axe: { run(options: object): Promise<any> } }).axe
        const { violations } = await axe.run({ resultTypes: ['violations'] })
        return violations
          .filter(({ impact }: { impact: string }) => impact === 'serious' || impact === 'critical')
          .map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes[0]?.html}`)
      })
      return found as string[]
    },
  }
}
