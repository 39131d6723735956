/**
 * Makes the pictures of docs/screenshots from the built product: `npm run build && npm run screenshots`. Needs a
 * container engine with the base images, and Debian's Chromium.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { enter } from '#test/support/cast'
import { startGitServer } from '#test/support/git-server'
import { ADMIN, eventually, nodeApp, startPortreeve } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { launch, type Look, visit } from '../test/e2e/support/browser.ts'

const directory = join(ROOT, 'docs/screenshots')
mkdirSync(directory, { recursive: true })
const LIGHT: Look = { width: 1280, height: 800, scheme: 'light' }
const DARK: Look = { ...LIGHT, scheme: 'dark' }
const PHONE: Look = { width: 375, height: 740, scheme: 'light' }

const forge = await startGitServer()
const portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host } })
const browser = await launch()
try {
  const admin = await enter(portreeve, ADMIN.email, ADMIN.password)
  const create = async (path: string, body: unknown) => (await portreeve.call('POST', path, body)).body.data
  const deploy = async (name: string, files: Record<string, string>) => {
    const repository = forge.repository(`team/${name}`)
    repository.commit(files, `Start ${name}`)
    const app = await create('/api/apps', { name, git_url: repository.url, soak_seconds: 1 })
    const settled = await portreeve.untilApp(app.id, ['running', 'failed'])
    await portreeve.untilDeployment(settled.latest_deployment.id)
    return settled
  }
  const shop = await deploy('shop', nodeApp('one'))
  await deploy('blog', nodeApp('two'))
  const broken = nodeApp('three')
  const failing = await deploy('billing', {
    ...broken,
    'package.json': broken['package.json'].replace('"scripts":{', '"scripts":{"build":"node missing.js",'),
  })
  for (const [key, value] of [
    ['LOG_LEVEL', 'info'],
    ['PAYMENT_KEY', 'sk_test_4242'],
    ['REGION', 'eu-central'],
  ])
    await create(`/api/apps/${shop.id}/env`, { key, value })
  const database = await create('/api/databases', { name: 'orders', engine: 'postgres' })
  await eventually('The database', async () => {
    const { status } = (await portreeve.call('GET', `/api/databases/${database.id}`)).body.data
    return status === 'running' ? true : undefined
  })
  const domain = await create('/api/domains', { app_id: shop.id, hostname: 'shop.example.com' })
  const live = (await portreeve.call('GET', `/api/apps/${shop.id}`)).body.data.live_deployment_id
  const take = async (look: Look, pages: readonly (readonly [name: string, path: string])[]) => {
    const { page, open, context } = await visit(browser, portreeve, look, admin.cookie)
    for (const [name, path] of pages) {
      await open(path)
      await page.screenshot({ path: join(directory, `${name}.png`) })
      process.stdout.write(`docs/screenshots/${name}.png\n`)
    }
    await context.close()
  }
  await take(LIGHT, [
    ['overview', '/'],
    ['app', `/apps/${shop.id}`],
    ['new-app', '/apps/new'],
    ['deployment', `/deployments/${live}`],
    ['failed-deployment', `/deployments/${failing.latest_deployment.id}`],
    ['domain', `/domains/${domain.id}`],
    ['variables', `/apps/${shop.id}/variables`],
    ['databases', '/databases'],
    ['monitoring', '/monitoring'],
    ['templates', '/templates'],
    ['explorer', '/explorer?operation=post--api-apps'],
  ])
  await take(DARK, [
    ['overview-dark', '/'],
    ['logs-dark', `/apps/${shop.id}/logs`],
    ['settings-dark', '/settings'],
  ])
  await take(PHONE, [['deployment-phone', `/deployments/${live}`]])
} finally {
  await browser.close()
  await portreeve.dispose()
  await forge.close()
}
