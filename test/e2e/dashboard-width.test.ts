import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { enter, join } from '#test/support/cast'
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

describe('where the menu covers the page', () => {
  it('Escape leaves it to the button that it was opened with, and the keyboard never goes on behind it', async () => {
    const { page, open, context } = await visit(browser, portreeve, PHONE, cookie)
    await open('/apps')
    const button = page.getByRole('button', { name: 'Menu' })
    const pages = page.getByRole('navigation', { name: 'Pages' })
    const isFocused = (element: Element) => element === document.activeElement
    await button.press('Enter')
    await pages.getByRole('link', { name: 'Apps' }).press('Escape')
    await pages.waitFor({ state: 'hidden' })
    expect(await button.evaluate(isFocused)).toBe(true)
    await button.press('Enter')
    await page.getByRole('button', { name: 'Log out' }).press('Tab')
    await pages.waitFor({ state: 'hidden' })
    await context.close()
  })
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
  it('no name, branch or command without a place to break makes a page scroll sideways', async () => {
    const { page, open, context } = await visit(browser, portreeve, PHONE, cookie)
    const image = 'registry.invalid/nothing:1'
    const made = await portreeve.call('POST', '/api/apps', { name: 'longest', image })
    const { id } = made.body.data.latest_deployment
    const name = 'w'.repeat(63)
    await page.route(/\/api\/apps(\/app_\w+)?(\?.*)?$/, async (route) => {
      const answer = await route.fetch()
      const { data, ...rest } = await answer.json()
      const named = Array.isArray(data) ? data.map((one) => ({ ...one, name })) : { ...data, name }
      await route.fulfill({ json: { ...rest, data: named } })
    })
    await page.route(`**/api/deployments/${id}`, async (route) => {
      const answer = await route.fetch()
      const { data } = await answer.json()
      const explanation = [{ field: 'start_command', value: 'x'.repeat(400), source: 'Procfile' }]
      const plan = { ...data.plan, explanation }
      await route.fulfill({ json: { data: { ...data, branch: 'b'.repeat(255), plan } } })
    })
    for (const path of ['/', `/deployments/${id}`, `/apps/${app_id}/settings`]) {
      await open(path)
      await page.getByText(name).first().waitFor({ state: 'attached' })
      const overhang = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
      expect([path, overhang]).toEqual([path, 0])
    }
    await context.close()
  })
})

describe('what is chosen', () => {
  it('as who is told of an alert is a webhook by its name, and one that the reader does not see stays', async () => {
    const webhook = async (name: string) => {
      const config = { url: `https://example.com/${name}` }
      const body = { name, kind: 'notification', provider: 'generic', config }
      return (await portreeve.call('POST', '/api/webhooks', body)).body.data.id as string
    }
    const [operators, others] = [await webhook('operators'), await webhook('others')]
    const channelsOf = async (name: string) => {
      const { body } = await portreeve.call('GET', '/api/monitoring/alerts')
      return body.data.find((rule: { name: string }) => rule.name === name).channels
    }
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await open('/monitoring/alerts?new=1')
    const dialog = page.getByRole('dialog')
    const told = dialog.getByRole('group', { name: 'Who is told' })
    await told.getByText('Every webhook that asks for alert.*').waitFor()
    await dialog.getByLabel('Name').fill('Slow answers')
    await told.getByLabel('operators').check()
    await told.getByLabel('others').check()
    await dialog.getByRole('button', { name: 'Add rule' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(new Set(await channelsOf('Slow answers'))).toEqual(new Set([operators, others]))
    await page.route('**/api/webhooks?*', async (route) => {
      const answer = await route.fetch()
      const { data } = await answer.json()
      const seen = data.filter(({ id }: { id: string }) => id !== others)
      await route.fulfill({ json: { data: seen, total: seen.length, pages: 1 } })
    })
    await open('/monitoring/alerts')
    await page.getByRole('button', { name: 'Edit Slow answers' }).click()
    expect(await told.getByLabel(`${others} (not among yours)`).isChecked()).toBe(true)
    await told.getByLabel('operators').uncheck()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await channelsOf('Slow answers')).toEqual([others])
    await context.close()
  })
})

describe('what is typed', () => {
  it('is not thrown away by a click beside the form, and a form that nobody typed into closes by one', async () => {
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await open('/ssh-keys')
    const dialog = page.getByRole('dialog')
    const begin = () => page.getByRole('main').getByRole('button', { name: 'Add key' }).first().click()
    await begin()
    await dialog.waitFor()
    await page.mouse.click(5, 5)
    await dialog.waitFor({ state: 'detached' })
    await begin()
    await dialog.getByLabel('Name').fill('deploy key')
    await page.mouse.click(5, 5)
    expect(await dialog.getByLabel('Name').inputValue()).toBe('deploy key')
    // What an input method composes ends with Escape, too.
    await dialog.getByLabel('Name').evaluate((field) => {
      const composed = { key: 'Escape', isComposing: true, bubbles: true, cancelable: true }
      field.dispatchEvent(new KeyboardEvent('keydown', composed))
    })
    expect(await dialog.getByLabel('Name').inputValue()).toBe('deploy key')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await context.close()
  })
  it('as a text of variables waits for the text that is there, and a text that cannot be read breaks no page', async () => {
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await portreeve.call('POST', `/api/apps/${app_id}/env`, { key: 'WHO', value: 'wor\u202ald' })
    let [asked, answer] = [0, () => {}]
    const held = new Promise<void>((done) => (answer = done))
    await page.route('**/env/export*', async (route) => {
      asked += 1
      if (asked === 1) return route.abort('failed')
      await held
      await route.continue()
    })
    await open(`/apps/${app_id}/variables`)
    await page.getByRole('button', { name: 'Edit as text' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Try again' }).click()
    await dialog.getByRole('status', { name: 'Loading' }).waitFor()
    expect(await dialog.getByRole('textbox').count()).toBe(0)
    answer()
    await dialog.getByRole('textbox').getByText('WHO').waitFor()
    // What turns the order of letters has a sign in an editor, too.
    expect(await dialog.locator('.cm-specialChar').count()).toBe(1)
    await context.close()
  })
  it('or chosen and refused is not shown as if it were so', async () => {
    await join(portreeve, 'grace', 'outsider')
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await page.route('**/api/team/members/*', (route) =>
      route.fulfill({
        status: 409,
        json: { error: { code: 'CONFLICT', message: 'It cannot be changed now.' } },
      }),
    )
    await open('/team')
    const role = page.getByLabel('Role of grace')
    await role.selectOption('Admin')
    await page.getByText('It cannot be changed now.').waitFor()
    expect(await role.inputValue()).toBe('member')
    await context.close()
  })
})

describe('what others wrote', () => {
  /** Turns the order of the letters after it. */
  const TURN = '\u202e'

  it('does not turn a change of a value around: what is before stands before what is after', async () => {
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    await page.route(`**/api/apps/${app_id}`, async (route) => {
      const answer = await route.fetch()
      const { data } = await answer.json()
      await route.fulfill({ json: { data: { ...data, needs_redeploy: true, live_deployment_id: 'dep_1' } } })
    })
    await page.route('**/changes?*', (route) =>
      route.fulfill({
        json: {
          data: [{ key: 'env.LIMIT', secret: false, before: `${TURN}100`, after: '200' }],
          ...{ total: 1, page: 1, per_page: 100, pages: 1 },
        },
      }),
    )
    await open(`/apps/${app_id}`)
    await page.getByRole('button', { name: 'Review' }).click()
    const left = async (tag: string) => (await page.getByRole('dialog').locator(tag).boundingBox())!.x
    await page.getByRole('dialog').locator('ins').waitFor()
    expect(await left('del')).toBeLessThan(await left('ins'))
    await context.close()
  })
  it('in a log is read in the order of its letters, with what was hidden named, and copied as it is', async () => {
    const { page, open, context } = await visit(browser, portreeve, LAPTOP, cookie)
    const text = `deploy ${TURN}deliaf`
    await page.route('**/logs?*', (route) =>
      route.fulfill({
        json: {
          data: [
            {
              seq: 1,
              at: '2026-01-01T00:00:00.000Z',
              stream: 'stdout',
              level: 'info',
              source: 'web.0',
              text,
            },
          ],
        },
      }),
    )
    await open(`/apps/${app_id}/logs`)
    const line = page.getByRole('log').getByText('deploy')
    await line.waitFor()
    const found = await line.evaluate((first) => {
      const whole = first.closest('span:has(> span)')!
      const letters = whole.lastElementChild!.firstChild!
      const range = document.createRange()
      const places = [...letters.textContent!].map((_, at) => {
        range.setStart(letters, at)
        range.setEnd(letters, at + 1)
        return range.getBoundingClientRect().left
      })
      getSelection()!.selectAllChildren(whole)
      const mark = whole.querySelector('[data-mark]')!
      return {
        is_in_order: places.every((place, at) => at === 0 || place > places[at - 1]!),
        copied: getSelection()!.toString(),
        named: getComputedStyle(mark, '::before').content,
      }
    })
    expect(found).toEqual({ is_in_order: true, copied: text, named: '"RLO"' })
    await context.close()
  })
})
