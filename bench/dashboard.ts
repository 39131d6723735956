/**
 * How the dashboard feels with 10,000 apps and an app of 1,000 variables, in Debian's Chromium: until a page can be
 * used, how far it jumps while it loads, how long a click and a key of the palette take, how much of a list is in the
 * page, and how long the page is held up while it shows a log of 100,000 lines. No engine.
 * `npx node bench/dashboard.ts [--loads=9]`
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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
const LINES = 100_000
const TASK_MS = 100
const options = numberOptions({ loads: 9 })
const report = createReport(
  `The dashboard with ${APPS} apps and ${VARIABLES} variables, ${options.loads} loads`,
)
const data_directory = mkdtempSync(join(tmpdir(), 'ptr-dashboard-'))
const start = () => spawnServer(data_directory, { DOCKER_HOST: 'unix:///nonexistent/docker.sock' })

/** What the browser notes from the start of each page on; read by `noted`. */
function note() {
  const seen = { shift: 0, clicks: [] as number[], keys: [] as number[], tasks: [] as number[] }
  Object.assign(window, { seen })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as unknown as { value: number; hadRecentInput: boolean }[])
      if (!entry.hadRecentInput) seen.shift += entry.value
  }).observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.name === 'click') seen.clicks.push(entry.duration)
      if (entry.name === 'keydown') seen.keys.push(entry.duration)
    }
  }).observe({ type: 'event', buffered: true, durationThreshold: 16 } as PerformanceObserverInit)
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) seen.tasks.push(entry.duration)
  }).observe({ type: 'longtask', buffered: true })
}
interface Seen {
  shift: number
  clicks: number[]
  keys: number[]
  tasks: number[]
}
const noted = (page: Page) => page.evaluate(() => (window as unknown as { seen: Seen }).seen)
const largest = (values: readonly number[]) => Math.max(0, ...values)

/** Milliseconds from the navigation until the page shows all it has and nothing stands for it any more. */
async function load(page: Page, url: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' })
  const usable = await page.waitForFunction(
    () => document.querySelector('h1') && !document.querySelector('.animate-pulse') && performance.now(),
  )
  return (await usable.jsonValue()) as number
}

const deployment = newId('dep')
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
  db.prepare(
    `INSERT INTO deployments (id, app_id, project_id, number, status, trigger, created_at, started_at, finished_at) SELECT ?, id, project_id, 1, 'cancelled', 'create', ?, ?, ? FROM apps LIMIT 1`,
  ).run(deployment, at, at, at)
  db.close()
  const lines = Array.from({ length: LINES }, (_, n) =>
    JSON.stringify({ seq: n + 1, at, step: 'build', stream: 'stdout', text: `line ${n + 1}` }),
  )
  mkdirSync(join(data_directory, 'logs/deployments'), { recursive: true })
  writeFileSync(join(data_directory, 'logs/deployments', `${deployment}.ndjson`), `${lines.join('\n')}\n`)
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
  report.check(`a click: at most ${CLICK_MS} ms`, largest(clicks) <= CLICK_MS, ms(largest(clicks)))

  await load(page, `${server.url}/apps`)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
  const answers: number[] = []
  for (const letter of 'app-9876') {
    const since = await page.evaluate(() => performance.now())
    await page.keyboard.press(letter)
    const shown = await page.waitForFunction(() => {
      const wanted = document.querySelector<HTMLInputElement>('[role=combobox]')!.value
      const options = [...document.querySelectorAll('[role=option]')]
      return options.some(({ textContent }) => textContent?.includes(wanted)) && performance.now()
    })
    answers.push(((await shown.jsonValue()) as number) - since)
  }
  const { keys } = await noted(page)
  report.check(`a key of the palette: at most ${CLICK_MS} ms`, largest(keys) <= CLICK_MS, ms(largest(keys)))
  report.check(`what it finds: within ${CLICK_MS} ms`, median(answers) <= CLICK_MS, ms(median(answers)))

  await load(page, `${server.url}/deployments/${deployment}`)
  await page.getByRole('log').getByText(`line ${LINES}`, { exact: true }).waitFor({ timeout: 60_000 })
  for (const part of [0.9, 0.1, 0.5, 1])
    await page.getByRole('log').evaluate((box, at) => {
      box.scrollTop = box.scrollHeight * at
    }, part)
  await page.getByLabel('Text or /pattern/').fill('line 4242')
  await page.getByRole('log').getByText('line 42420', { exact: true }).waitFor()
  const { tasks } = await noted(page)
  report.check(
    `${LINES} lines: no task above ${TASK_MS} ms`,
    largest(tasks) <= TASK_MS,
    `${tasks.length} above 50 ms, longest ${ms(largest(tasks))}`,
  )
  const drawn = await page.getByRole('log').locator('time').count()
  report.check(`${LINES} lines: at most ${MOST_ROWS} in the page`, drawn <= MOST_ROWS, `${drawn} lines`)
} finally {
  await browser.close()
  await server.stop()
  rmSync(data_directory, { recursive: true, force: true })
}
report.end()
