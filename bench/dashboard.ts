/**
 * How the dashboard feels with 10,000 apps and an app of 1,000 variables, in Debian's Chromium: until a page can be
 * used, how far it jumps while it loads, how long a click takes, how much of a list is in the page. No engine.
 * `npx node bench/dashboard.ts [--loads=9]`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Page } from 'playwright-core'
import { newId } from '#server/kernel/ids'
import { ADMIN } from '#test/support/portreeve'
import { launch } from '../test/e2e/support/browser.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { spawnServer } from './support/server.ts'

const APPS = 10_000
const VARIABLES = 1000
const MOST_ROWS = 200
const USABLE_MS = 1000
const CLICK_MS = 100
const options = numberOptions({ loads: 9 })
const report = createReport(
  `The dashboard with ${APPS} apps and ${VARIABLES} variables, ${options.loads} loads`,
)
const data_directory = mkdtempSync(join(tmpdir(), 'ptr-dashboard-'))
const start = () => spawnServer(data_directory, { DOCKER_HOST: 'unix:///nonexistent/docker.sock' })

/** What the browser notes from the start of each page on; read by `noted`. */
function note() {
  const seen = { shift: 0, clicks: [] as number[] }
  Object.assign(window, { seen })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as unknown as { value: number; hadRecentInput: boolean }[])
      if (!entry.hadRecentInput) seen.shift += entry.value
  }).observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === 'click') seen.clicks.push(entry.duration)
  }).observe({ type: 'event', buffered: true, durationThreshold: 16 } as PerformanceObserverInit)
}
const noted = (page: Page) =>
  page.evaluate(() => (window as unknown as { seen: { shift: number; clicks: number[] } }).seen)

/** Milliseconds from the navigation until the page shows all it has and nothing stands for it any more. */
async function load(page: Page, url: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' })
  const usable = await page.waitForFunction(
    () => document.querySelector('h1') && !document.querySelector('.animate-pulse') && performance.now(),
  )
  return (await usable.jsonValue()) as number
}

function fill(project_id: string): void {
  const db = new Database(join(data_directory, 'portreeve.db'))
  const at = new Date().toISOString()
  const app = db.prepare(
    `INSERT INTO apps (id, name, project_id, status, source, git_url, created_at, updated_at) VALUES (?, ?, ?, 'stopped', 'git', 'https://git.example.com/a.git', ?, ?)`,
  )
  const domain = db.prepare(
    `INSERT INTO domains (id, app_id, project_id, hostname, kind, status, ssl_mode, token, created_at, updated_at) VALUES (?, ?, ?, ?, 'automatic', 'active', 'off', '-', ?, ?)`,
  )
  db.transaction(() => {
    for (let n = 0; n < APPS; n += 1) {
      const id = newId('app')
      app.run(id, `app-${n}`, project_id, at, at)
      domain.run(newId('dom'), id, project_id, `app-${n}.apps.test`, at, at)
    }
  })()
  db.close()
}

const first = await start()
await first.firstAnswer('/readyz').catch(() => undefined)
const token = await first.login()
const call = async (url: string, path: string, body?: unknown, as = token) => {
  const answer = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return ((await answer.json()) as { data: any }).data
}
const [project] = await call(first.url, '/api/projects')
await first.stop()
fill(project.id)
const server = await start()
const browser = await launch()
try {
  await server.firstAnswer('/healthz')
  const again = await server.login()
  const [app] = await call(server.url, '/api/apps', undefined, again)
  const text = Array.from({ length: VARIABLES }, (_, n) => `KEY_${n}=value ${n}`).join('\n')
  await call(server.url, `/api/apps/${app.id}/env/import`, { text, mode: 'merge' }, again)
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  await context.request.post(`${server.url}/api/auth/login`, { data: ADMIN })
  const page = await context.newPage()
  await page.addInitScript(note)

  const pages = {
    overview: '/',
    apps: '/apps',
    settings: `/apps/${app.id}/settings`,
    variables: `/apps/${app.id}/variables`,
  }
  for (const [name, path] of Object.entries(pages)) {
    const took: number[] = []
    let shift = 0
    for (let n = 0; n < options.loads; n += 1) {
      took.push(await load(page, server.url + path))
      shift = Math.max(shift, (await noted(page)).shift)
    }
    const rows = await page.locator('tbody tr').count()
    report.check(`${name}: usable within ${USABLE_MS} ms`, median(took) <= USABLE_MS, ms(median(took)))
    report.figure(`${name}: layout shift`, shift.toFixed(3))
    report.check(`${name}: at most ${MOST_ROWS} rows`, rows <= MOST_ROWS, `${rows} rows`)
  }
  const size = (await page.content()).length
  report.figure(`HTML of ${VARIABLES} variables`, `${(size / 1024).toFixed(0)} KiB`)
  for (const tab of ['Overview', 'Domains', 'Storage', 'Cron jobs', 'Settings', 'Events', 'Variables'])
    await page
      .getByRole('navigation', { name: /^Pages of/ })
      .getByRole('link', { name: tab })
      .click()
  // Chromium leaves out what took less than 16 ms.
  const { clicks } = await noted(page)
  report.check(
    `a click: at most ${CLICK_MS} ms`,
    Math.max(0, ...clicks) <= CLICK_MS,
    ms(Math.max(0, ...clicks)),
  )
} finally {
  await browser.close()
  await server.stop()
  rmSync(data_directory, { recursive: true, force: true })
}
report.end()
