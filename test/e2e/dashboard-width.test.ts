import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { enter } from '#test/support/cast'
import { ADMIN, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { launch, type Look, visit } from './support/browser.ts'

const LAPTOP: Look = { width: 1280, height: 800, scheme: 'light' }
const PHONE: Look = { width: 375, height: 740, scheme: 'light' }
let portreeve: Portreeve
let browser: Browser
let cookie: string
let app_id: string
beforeAll(async () => {
  portreeve = await startPortreeve()
  browser = await launch()
  cookie = (await enter(portreeve, ADMIN.email, ADMIN.password)).cookie
  app_id = (await portreeve.call('POST', '/api/apps', { name: 'checkout', source: 'upload' })).body.data.id
})
afterAll(async () => {
  await browser?.close()
  await portreeve?.dispose()
})

describe('at 1280 pixels', () => {
  it('the name of a domain goes on in the next line behind a dot, not within a word, however long its finding is', async () => {
    const hostname = 'checkout.with-a-long-name.203-0-113-117.sslip.io'
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await page.route('**/api/domains?*', async (route) => {
      const answer = await route.fetch()
      const { data, ...rest } = await answer.json()
      const [one] = data
      const message = `${hostname} leads to 192.0.2.1, which is no address of this server. `.repeat(5)
      const long = {
        hostname_unicode: hostname,
        kind: 'custom',
        verification: { ...one.verification, message },
      }
      await route.fulfill({ response: answer, json: { ...rest, data: [{ ...one, ...long }] } })
    })
    await open('/domains')
    const link = page.getByRole('link', { name: hostname })
    await link.waitFor()
    const lines = await link.evaluate((element) => {
      const words = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
      const found: number[] = []
      while (words.nextNode()) {
        const range = document.createRange()
        range.selectNodeContents(words.currentNode)
        found.push(new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size)
      }
      return found
    })
    expect(Math.max(...lines)).toBe(1)
    await context.close()
  })
  it('the steps of a deployment that failed say in whole words that they were not reached', async () => {
    const image = 'registry.invalid/nothing:1'
    const { body } = await portreeve.call('POST', '/api/apps', { name: 'unreachable', image })
    const { id } = await portreeve.untilDeployment(body.data.latest_deployment.id)
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await open(`/deployments/${id}`)
    const steps = page.getByRole('list', { name: 'Steps' }).getByRole('listitem')
    await steps.filter({ hasText: 'Not reached' }).first().waitFor()
    const cut = await steps.evaluateAll((items) =>
      items
        .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
        .map(({ textContent }) => textContent),
    )
    expect(cut).toEqual([])
    await context.close()
  })
  it('everything above a log that has older lines stands in one line', async () => {
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await page.route('**/logs?*', async (route) => {
      const answer = await route.fetch()
      const data = Array.from({ length: 2000 }, (_, at) => ({
        ...{ seq: 5000 + at, at: '2026-01-01T00:00:00.000Z', stream: 'stdout', level: 'info' },
        ...{ source: 'web.0', text: `line ${at}` },
      }))
      await route.fulfill({ response: answer, json: { data } })
    })
    await open(`/apps/${app_id}/logs`)
    await page.getByRole('button', { name: 'Older lines' }).waitFor()
    const middleOf = async (name: string) => {
      const { y, height } = (await page.getByRole('button', { name }).boundingBox())!
      return Math.round(y + height / 2)
    }
    const search = (await page.getByRole('searchbox').boundingBox())!
    expect(Math.abs((await middleOf('Save the whole log')) - (search.y + search.height / 2))).toBeLessThan(8)
    await context.close()
  })
})

describe('at 375 pixels', () => {
  it('a notice with two buttons is read in lines, not letter by letter', async () => {
    const { page, open, context } = await visit(browser, portreeve, PHONE, cookie)
    const made = await portreeve.call('POST', '/api/databases', { name: 'orders', engine: 'postgres' })
    await page.route(`**/api/databases/${made.body.data.id}*`, (route) =>
      route.fulfill({
        json: {
          data: {
            ...made.body.data,
            status: 'running',
            previous_volume: { volume_id: 'vol_1', version: '16', kept_since: '2026-01-01T00:00:00.000Z' },
          },
        },
      }),
    )
    await open(`/databases/${made.body.data.id}`)
    const text = page.getByText('are kept', { exact: false }).first()
    await text.waitFor()
    expect((await text.boundingBox())!.width).toBeGreaterThan(150)
    await context.close()
  })
})
