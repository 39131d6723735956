import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { ADMIN, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { launch, visit } from './support/browser.ts'
import { deployed } from './support/deployed.ts'

let forge: GitServer
let portreeve: Portreeve
let browser: Browser
beforeAll(async () => {
  forge = await startGitServer()
  portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host } })
  browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  await portreeve?.dispose()
  await forge?.close()
})

it('the terminal page shows a shell in colours, within the policy of the pages', async () => {
  const repository = forge.repository('shell')
  repository.commit(nodeApp('one'))
  const { id } = await deployed(portreeve, { name: 'shell', git_url: repository.url })
  const login = await portreeve.call('POST', '/api/auth/login', ADMIN)
  const cookie = /session=([^;]+)/.exec(login.headers.get('set-cookie')!)![1]!
  const { page, open, faults, context } = await visit(browser, portreeve, undefined, cookie)
  await open(`/apps/${id}/terminal`)
  await page.locator('[data-state="open"]').waitFor()
  await page.keyboard.type("printf '\\033[38;2;10;200;30mgre''en\\033[0m\\n'; echo sum-$((40+2))\n")
  await page.locator('.xterm-rows', { hasText: 'sum-42' }).waitFor()
  const colour = await page
    .locator('.xterm-rows span', { hasText: /^green$/ })
    .first()
    .evaluate((element) => getComputedStyle(element).color)
  expect(colour).toBe('rgb(10, 200, 30)')
  if (process.env.SHOTS) await page.screenshot({ path: '/tmp/terminal-page.png' })
  await page.keyboard.type('exit\n')
  await page.getByText('The shell has ended with exit code 0.').waitFor()
  await open('/disk')
  await page.getByText('Build cache').first().waitFor()
  if (process.env.SHOTS) await page.screenshot({ path: '/tmp/disk-page.png' })
  expect(faults).toEqual([])
  await context.close()
})
