import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CAST_ENVIRONMENT, join } from '#test/support/cast'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { ADMIN, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { launch, NETWORK_CHANGED, visit } from './support/browser.ts'
import { deployed } from './support/deployed.ts'

let forge: GitServer
let portreeve: Portreeve
let browser: Browser
beforeAll(async () => {
  forge = await startGitServer()
  portreeve = await startPortreeve({
    env: { ...CAST_ENVIRONMENT, PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host },
  })
  browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  await portreeve?.dispose()
  await forge?.close()
})

/** One session for all: an address may log in only so often. */
let cookie: string | undefined
const sessionCookie = async () => {
  if (cookie) return cookie
  const login = await portreeve.call('POST', '/api/auth/login', ADMIN)
  cookie = /session=([^;]+)/.exec(login.headers.get('set-cookie')!)![1]!
  return cookie
}

it('the terminal page shows a shell in colours, within the policy of the pages', async () => {
  const repository = forge.repository('shell')
  repository.commit(nodeApp('one'))
  const { id } = await deployed(portreeve, { name: 'shell', git_url: repository.url })
  const { page, open, barriers, faults, context } = await visit(
    browser,
    portreeve,
    undefined,
    await sessionCookie(),
  )
  await open(`/apps/${id}/terminal`)
  await page.locator('[data-state="open"]').waitFor()
  await page.keyboard.type("printf '\\033[38;2;10;80;30mgre''en\\033[0m\\n'; echo sum-$((40+2))\n")
  await page.locator('.xterm-rows', { hasText: 'sum-42' }).waitFor()
  const colour = await page
    .locator('.xterm-rows span', { hasText: /^green$/ })
    .first()
    .evaluate((element) => getComputedStyle(element).color)
  expect(colour).toBe('rgb(10, 80, 30)')
  await page.keyboard.type("seq 200; printf '\\033[92mpa''le\\033[0m\\n'\n")
  const pale = page.locator('.xterm-rows span', { hasText: /^pale$/ })
  await pale.waitFor()
  // The last line of a full screen is within the frame, and a colour for a dark ground is read on a light one.
  const depths = await page.getByRole('region', { name: /^Terminal/ }).evaluate((frame) => {
    const bottom = (selector: string) => frame.querySelector(selector)!.getBoundingClientRect().bottom
    const around = Number.parseFloat(getComputedStyle(frame).paddingBottom)
    return [bottom('.xterm-rows > :last-child'), frame.getBoundingClientRect().bottom - around]
  })
  expect(depths[0]).toBeLessThanOrEqual(depths[1]!)
  expect(await barriers()).toEqual([])
  await page.keyboard.press('Control+Shift+f')
  await page.getByLabel('Search in the terminal', { exact: true }).waitFor()
  await page.keyboard.type('sum-')
  await page.getByText('2 of 2', { exact: true }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByText('1 of 2', { exact: true }).waitFor()
  await page.keyboard.press('Escape')
  // Tab is the shell's: the keyboard needs another way out.
  const inside = () => page.evaluate(() => document.activeElement?.closest('.xterm') !== null)
  await page.keyboard.press('Tab')
  expect(await inside()).toBe(true)
  await page.keyboard.press('Control+Shift+l')
  expect(await inside()).toBe(false)
  await page.keyboard.press('Tab')
  expect(await inside()).toBe(false)
  await page.locator('.xterm-helper-textarea').focus()
  await page.keyboard.press('Control+u')
  await page.keyboard.type('exit\n')
  await page.getByText('The shell has ended with exit code 0.').waitFor()
  await page.getByRole('button', { name: 'Open a new one' }).click()
  await page.locator('[data-state="open"]').waitFor()
  // What the first shell printed is still there.
  expect(await pale.count()).toBe(1)
  await page.keyboard.type('exit\n')
  await open('/disk')
  await page.getByText('Build cache').first().waitFor()
  expect(faults).toEqual([])
  await context.close()
})

it('a dialog takes the focus, keeps what was refused, closes with Escape and gives the focus back', async () => {
  const { page, open, faults, context } = await visit(browser, portreeve, undefined, await sessionCookie())
  const { keyboard } = page
  const dialog = page.getByRole('dialog')
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim())
  await open('/projects')
  await page.getByRole('button', { name: 'Create project' }).focus()
  await keyboard.press('Enter')
  await dialog.waitFor()
  const empty = dialog.getByText('Must not be empty.')
  await keyboard.type('  ')
  await keyboard.press('Enter')
  await empty.waitFor()
  expect(await dialog.getByLabel('Name').inputValue()).toBe('  ')
  await keyboard.type('default')
  await empty.waitFor({ state: 'detached' })
  await keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await expect.poll(focused).toBe('Create project')

  await portreeve.call('POST', '/api/ssh-keys/generate', { name: 'spare' })
  await open('/ssh-keys')
  await page.getByRole('button', { name: /^Delete/ }).focus()
  await keyboard.down('Enter')
  await dialog.waitFor()
  await expect.poll(focused).toBe('Delete')
  // The key is still held from opening the dialog, so it does not answer it yet.
  await keyboard.down('Enter')
  await keyboard.up('Enter')
  expect(await dialog.isVisible()).toBe(true)
  await keyboard.press('Enter')
  await page.getByText('No SSH keys').waitFor()

  await open('/team')
  await page.getByRole('button', { name: 'Invite' }).click()
  await dialog.waitFor()
  await keyboard.type('colleague@example.com')
  await keyboard.press('Enter')
  await dialog.getByText('Hand this link over yourself').waitFor()
  expect(await dialog.getByRole('button').allTextContents()).not.toContain('Cancel')
  await dialog.getByRole('button', { name: 'Done' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(
    faults.filter((fault) => !/status of 4(09|22)/.test(fault) && !fault.includes(NETWORK_CHANGED)),
  ).toEqual([])
  await context.close()
})

it('a compose file is written in an editor, which shows what is wrong at its line and stores nothing of it', async () => {
  const { page, open, barriers, faults, context } = await visit(
    browser,
    portreeve,
    undefined,
    await sessionCookie(),
  )
  const { keyboard } = page
  await open('/apps/new')
  await page.getByLabel('Deploy from').selectOption('compose')
  await page.locator('.cm-content').waitFor()
  await page.getByRole('textbox', { name: 'Compose file' }).focus()
  await keyboard.insertText('services:\n  web:\n    image: nginx:1.29\n    pidd: 1\n')
  // Tab indents; after Escape it leads on.
  await keyboard.press('Escape')
  await keyboard.press('Tab')
  await keyboard.type('stack')
  await keyboard.press('Enter')
  await page.locator('.cm-fault', { hasText: 'pidd: 1' }).waitFor()
  expect(await page.locator('.cm-fault-text').textContent()).toBe(
    'Is not a key of the Compose Specification.',
  )
  expect((await portreeve.call('GET', '/api/apps?q=stack')).body.data).toEqual([])
  expect(await barriers()).toEqual([])
  await page.getByRole('textbox', { name: 'Compose file' }).press('Control+z')
  expect(await page.locator('.cm-fault').count()).toBe(0)
  // Where text is wider than the page, it is scrolled by keys, too.
  await page.setViewportSize({ width: 375, height: 740 })
  await open('/explorer?operation=post--api-apps')
  await page.locator('.cm-content').waitFor()
  expect(await barriers()).toEqual([])
  // What the server refused is said on the console, too.
  expect(faults.filter((fault) => !/status of 422/.test(fault))).toEqual([])
  await context.close()
})

it('the palette leads to what can be done and to the pages of the open app, whose log is saved as a whole', async () => {
  const [{ id }] = (await portreeve.call('GET', '/api/apps?q=shell')).body.data
  const { page, open, faults, context } = await visit(browser, portreeve, undefined, await sessionCookie())
  const { keyboard } = page
  const choose = async (text: string) => {
    await keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
    await keyboard.type(text)
    await page.locator('[role=option][aria-selected=true]', { hasText: new RegExp(text, 'i') }).waitFor()
    await keyboard.press('Enter')
  }
  await open(`/apps/${id}`)
  await choose('shell: logs')
  await page.waitForURL(`**/apps/${id}/logs`)
  await page.getByRole('log').locator('time').first().waitFor()
  // A search in the page does not narrow what is saved.
  await page.getByLabel('Text or /pattern/').fill('nothing has this')
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save the whole log' }).click(),
  ])
  const { data } = (await portreeve.call('GET', `/api/apps/${id}/logs`)).body
  expect(data.length).toBeGreaterThan(0)
  expect(
    readFileSync(await saved.path(), 'utf8')
      .trimEnd()
      .split('\n').length,
  ).toBe(data.length)
  await choose('create a volume')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).waitFor()
  await keyboard.press('Escape')
  await page.waitForURL(/\/volumes$/)
  await keyboard.press('g')
  await keyboard.press('d')
  await page.waitForURL('**/deployments')
  expect(faults).toEqual([])
  // Away from the app, nothing is offered that would be done to it.
  await keyboard.press('Control+k')
  await keyboard.type('restart shell')
  await page.getByText('Nothing has “restart shell” in its name.').waitFor()
  await keyboard.press('Escape')
  await open(`/apps/${id}`)
  await choose('restart shell')
  await page.getByText('Restarting without downtime.').waitFor()
  const { latest_deployment } = (await portreeve.call('GET', `/api/apps/${id}`)).body.data
  expect(await portreeve.untilDeployment(latest_deployment.id)).toMatchObject({
    trigger: 'restart',
    status: 'live',
  })
  await context.close()
})

it('whoever is about to shut themselves out is told before', async () => {
  const [{ id }] = (await portreeve.call('GET', '/api/apps?q=shell')).body.data
  const app = (await portreeve.call('GET', `/api/apps/${id}`)).body.data
  const domain = await portreeve.call('POST', '/api/domains', {
    app_id: app.id,
    hostname: 'shut.example.com',
  })
  const admin = await visit(browser, portreeve, undefined, await sessionCookie())
  await admin.open(`/domains/${domain.body.data.id}`)
  const shuts_out = admin.page.getByText('This shuts you out')
  await admin.page.getByLabel('Allowed addresses').fill('203.0.113.0/24')
  await shuts_out.waitFor()
  await admin.page.getByLabel('Allowed addresses').fill('203.0.113.0/24\n0.0.0.0/0\n::/0')
  await shuts_out.waitFor({ state: 'detached' })
  await admin.context.close()

  const owner = await join(portreeve, 'owner', 'owner')
  const { page, open, faults, context } = await visit(browser, portreeve, undefined, owner.cookie)
  await open(`/projects/${app.project_id}/members`)
  const role = page.getByRole('row', { name: owner.email }).getByRole('combobox')
  await role.selectOption('viewer')
  await page.getByRole('dialog', { name: 'Lower your own role?' }).waitFor()
  await page.keyboard.press('Escape')
  expect(await role.inputValue()).toBe('owner')
  const members = (await portreeve.call('GET', `/api/projects/${app.project_id}/members`)).body.data
  expect(members.find(({ user_id }: { user_id: string }) => user_id === owner.id).role).toBe('owner')
  await page.getByRole('link', { name: 'What roles may do' }).click()
  await page.getByRole('button', { name: 'Apps' }).click()
  const deletion = page.getByRole('row', { name: /^Delete an app/ })
  expect(await deletion.getByRole('img').evaluateAll((marks) => marks.map((mark) => mark.ariaLabel))).toEqual(
    ['no', 'no', 'no', 'yes', 'yes'],
  )
  expect(faults).toEqual([])
  await context.close()
})

it('a part of a chart is chosen by dragging or by keys, and is in the address, with the deployments of that time', async () => {
  const [{ id }] = (await portreeve.call('GET', '/api/apps?q=shell')).body.data
  const { page, open, barriers, faults, context } = await visit(
    browser,
    portreeve,
    undefined,
    await sessionCookie(),
  )
  // Two samples make a line; one is taken every ten seconds.
  await eventually('Two samples', async () => {
    const { points } = (await portreeve.call('GET', `/api/monitoring/apps/${id}`)).body.data
    return points.length > 1 || undefined
  })
  await open(`/apps/${id}/metrics`)
  const chart = page.getByRole('slider', { name: /^Processor/ })
  await chart.waitFor()
  const memory = page.locator('figure', { hasText: 'Memory' })
  const box = (await chart.boundingBox())!
  await page.mouse.move(box.x + box.width / 2, box.y + 40)
  // One cursor for all charts.
  expect(await memory.locator('svg > line').count()).toBe(4)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width + 9, box.y + 40, { steps: 3 })
  await page.mouse.up()
  await page.waitForURL(/from=.*&to=/)
  const { searchParams } = new URL(page.url())
  const length_ms = Date.parse(searchParams.get('to')!) - Date.parse(searchParams.get('from')!)
  expect(Math.round(length_ms / 60_000)).toBe(30)
  await page.reload()
  expect(await page.getByLabel('Range', { exact: true }).inputValue()).toBe('own')
  await memory.getByRole('link', { name: '#1' }).waitFor()
  expect(await barriers()).toEqual([])
  await chart.focus()
  await page.keyboard.press('Escape')
  await page.waitForURL((url) => !url.search.includes('from='))
  await chart.focus()
  for (const key of ['ArrowLeft', 'Shift+End', 'Enter']) await page.keyboard.press(key)
  await page.waitForURL(/from=.*&to=/)
  await page.goBack()
  await page.waitForURL((url) => !url.search.includes('from='))
  await page.getByRole('link', { name: '#1' }).first().click()
  await page.waitForURL('**/deployments/dep_*')
  expect(faults).toEqual([])
  await context.close()
})
