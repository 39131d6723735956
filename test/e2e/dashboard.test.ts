import { randomBytes } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { generate } from 'otplib'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { enter, join as joinTeam, type Person } from '#test/support/cast'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { ADMIN, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { launch, type Look, NETWORK_CHANGED, visit } from './support/browser.ts'
import { addresses, UNKNOWN } from './support/dashboard-pages.ts'
import { lookAt } from './support/looks.ts'
import { pretendToStream } from './support/streamed-log.ts'

/** Shown wherever something may have a name of its own; none of it may become markup or leave its box. */
const HOSTILE = `"><img src=x onerror=alert(1)>${'W'.repeat(40)}`
/** What the repository of the shop says of its variables. */
const EXAMPLE = '# Who is greeted\nWHO=world\n'
const WIDE: Look = { width: 1280, height: 800, scheme: 'light' }

let browser: Browser
let forge: GitServer
let portreeve: Portreeve
let admin: Person
let viewer: Person
let outsider: Person
const samples: Record<string, string> = {}
/** A deployment whose build failed, once one was needed. */
let failed = ''

beforeAll(async () => {
  forge = await startGitServer()
  portreeve = await startPortreeve({
    env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host, PORTREEVE_TRUSTED_PROXIES: '127.0.0.1' },
  })
  browser = await launch()
  admin = await enter(portreeve, ADMIN.email, ADMIN.password)
  viewer = await joinTeam(portreeve, 'viewer', 'viewer')
  outsider = await joinTeam(portreeve, 'outsider', 'outsider')
})
afterAll(async () => {
  await browser?.close()
  await portreeve?.dispose()
  await forge?.close()
})

const make = async (path: string, body: unknown) => {
  const answer = await portreeve.call('POST', path, body)
  expect(answer.status, `${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body.data
}

/** A repository of an app whose build fails; of its own for each attempt, since a name is given once. */
function brokenRepository(name: string): { name: string; url: string } {
  const unique = `${name}-${randomBytes(3).toString('hex')}`
  const repository = forge.repository(`team/${unique}`)
  const files = nodeApp('three')
  const build = '"scripts":{"build":"node missing.js",'
  repository.commit(
    { ...files, 'package.json': files['package.json']!.replace('"scripts":{', build) },
    'third',
  )
  return { name: unique, url: repository.url }
}
async function failedDeployment(): Promise<string> {
  if (failed) return failed
  const { name, url } = brokenRepository('broken')
  const app = await make('/api/apps', { name, git_url: url })
  await portreeve.untilDeployment(app.latest_deployment.id)
  return (failed = app.latest_deployment.id)
}

/** What is wrong with pages, each in every look, as somebody sees them. */
async function walk(who: string, person: Person, paths: readonly string[]): Promise<string[]> {
  const visitor = await visit(browser, portreeve, WIDE, person.cookie)
  const { open, faults, context } = visitor
  const problems: string[] = []
  for (const path of paths) {
    const shown = await open(path).then(
      () => [],
      () => ['never shows all of itself'],
    )
    const said = await visitor.page.locator('body').innerText()
    const found = [
      ...shown,
      ...(/\bundefined\b/.test(said) ? ['says «undefined»'] : []),
      ...(await lookAt(visitor, who, path, who === 'administrator')),
      ...faults.splice(0).filter((fault) => !isRefusal(fault, person, path)),
    ]
    problems.push(...found.map((one) => `${path} (${who}): ${one}`))
  }
  await context.close()
  return problems
}
/** Two walks at a time, each with half of the pages. */
const walkTogether = async (who: string, person: Person, paths: readonly string[]) =>
  (
    await Promise.all(
      [0, 1].map((part) =>
        walk(
          who,
          person,
          paths.filter((_, n) => n % 2 === part),
        ),
      ),
    )
  ).flat()

describe('the dashboard', () => {
  it('teaches on every page of an installation that has nothing yet', async () => {
    const paths = addresses({}).filter((path) => !path.includes(UNKNOWN))
    expect(paths.length).toBeGreaterThan(25)
    expect(await walkTogether('first', admin, paths)).toEqual([])
  }, 600_000)

  it('says in a form what has to be there first, and leads to it', async () => {
    const { page, open, faults, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    await open('/redirects?new=1')
    await page.getByLabel('Domain').getByText('There is no domain yet').waitFor({ state: 'attached' })
    await page.getByRole('link', { name: 'Add a domain' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add a domain' })
    await dialog.getByLabel('App').getByText('There is no app yet').waitFor({ state: 'attached' })
    await dialog.getByLabel('Name').fill('shop.example.com')
    await dialog.getByRole('button', { name: 'Add domain' }).click()
    const isMissing = (select: HTMLSelectElement) => select.validity.valueMissing
    expect(await dialog.getByLabel('App').evaluate(isMissing)).toBe(true)
    await dialog.getByRole('link', { name: 'Create an app' }).click()
    await page.waitForURL('**/apps/new')
    await open('/backups?new=1')
    await page.getByLabel('What').getByText('Choose one').waitFor({ state: 'attached' })
    await page.getByLabel('What').selectOption('Portreeve itself')
    await page.getByRole('button', { name: 'Back up', exact: true }).click()
    await page.getByText('Set one under Backups, Destinations.').waitFor()
    expect(faults.filter((fault) => !fault.includes('/api/backups'))).toEqual([])
    await context.close()
  })
  it('leads from the login to a running app with the keyboard alone', async () => {
    const repository = forge.repository('team/shop')
    repository.commit({ ...nodeApp('one'), '.env.example': EXAMPLE }, 'first')
    const { page, faults, context } = await visit(browser, portreeve)
    await page.goto(portreeve.url)
    await page.waitForURL('**/login')
    const { keyboard } = page
    await page.waitForFunction(() => document.activeElement?.tagName === 'INPUT')
    await keyboard.type(ADMIN.email)
    await keyboard.press('Tab')
    await keyboard.type(ADMIN.password)
    await keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
    await keyboard.type('create an app')
    await keyboard.press('Enter')
    await page.waitForURL('**/apps/new')
    await page.waitForFunction(() =>
      (document.activeElement as HTMLInputElement)?.placeholder?.includes('git'),
    )
    await keyboard.type(repository.url)
    await page.getByText('server.js').first().waitFor()
    await keyboard.press('Enter')
    await page.waitForURL('**/deployments/dep_*')
    await page.locator('h1 + *').getByText('Live', { exact: true }).waitFor({ timeout: 120_000 })
    await page.getByRole('log').getByText('Detected node').waitFor()
    samples.deployments = page.url().split('/').at(-1)!
    expect(await portreeve.visit('shop.apps.test')).toEqual({ status: 200, body: 'one' })
    expect(faults).toEqual([])
    await context.close()
  })

  it('lets somebody who never saw it do each of six things in five interactions at most', async () => {
    const shop = forge.repository('team/shop')
    shop.commit({ ...nodeApp('two'), '.env.example': EXAMPLE }, 'second')
    const [running] = (await portreeve.call('GET', '/api/apps?q=shop')).body.data
    await portreeve.call('PUT', `/api/apps/${running.id}`, { soak_seconds: 0 })
    const second = await make(`/api/apps/${running.id}/deploy`, {})
    const broken = brokenRepository('till')
    const key = broken.name.replace('-', '_').toUpperCase()
    const hostname = `${broken.name}.example.com`
    const { page, open, faults, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    let steps = 0
    const click = async (role: 'link' | 'button', name: string | RegExp) => {
      steps += 1
      await page
        .getByRole(role, { name, exact: typeof name === 'string' })
        .last()
        .click()
    }
    const type = async (label: string, text: string) => {
      steps += 1
      await page.getByLabel(label, { exact: true }).last().fill(text)
    }
    const counts: Record<string, number> = {}
    const task = async (name: string, start: string, act: () => Promise<void>) => {
      await open(start)
      // The menu has links of the same names as the tabs of an app, and is there before them.
      if (start !== '/') await page.getByRole('main').getByRole('link', { name: 'Domains' }).waitFor()
      steps = 0
      await act()
      counts[name] = steps
    }
    await task('deploy an app', '/', async () => {
      await click('link', 'Create app')
      await type('Git URL', broken.url)
      await click('button', 'Create and deploy')
      await page.waitForURL('**/deployments/dep_*')
    })
    failed = page.url().split('/').at(-1)!
    await portreeve.untilDeployment(failed)
    await portreeve.untilDeployment(second.id)
    await task('find the cause of a failed build', '/', async () => {
      await click('link', new RegExp(`^${broken.name}\\s+Failed`))
      await click('link', 'See why')
      await page.getByRole('alert').getByText('missing.js').first().waitFor()
    })
    await task('add a domain', `/apps/${running.id}`, async () => {
      await click('link', 'Domains')
      await click('button', 'Add domain')
      await type('Name', hostname)
      await click('button', 'Add domain')
      await page.getByText(hostname).first().waitFor()
    })
    await task('set a variable', `/apps/${running.id}`, async () => {
      await click('link', 'Variables')
      await click('button', 'Add variable')
      await type('Key', key)
      await type('Value', 'hello')
      await click('button', 'Save')
      await page.getByRole('cell', { name: key, exact: true }).waitFor()
    })
    await task('roll back', `/apps/${running.id}`, async () => {
      await click('link', 'Deployments')
      await click('link', '#1')
      await click('button', 'Roll back to this')
      await click('button', 'Roll back')
      await page.waitForURL((url) => !url.href.includes(samples.deployments!) && /dep_/.test(url.href))
    })
    await portreeve.untilDeployment(page.url().split('/').at(-1)!)
    // What the rollback left: pushes wait until somebody says so.
    await open(`/apps/${running.id}`)
    await page.getByRole('main').getByRole('link', { name: 'turn it on' }).click()
    expect(await page.getByLabel('Deploy on push').isChecked()).toBe(false)
    await task('invite a colleague', '/', async () => {
      await click('link', 'Team')
      await click('button', 'Invite')
      await type('E-mail address', `colleague@${hostname}`)
      await click('button', 'Invite')
      await page.getByRole('button', { name: 'Done' }).waitFor()
    })
    expect(Object.keys(counts)).toHaveLength(6)
    for (const [name, count] of Object.entries(counts)) expect([name, count <= 5]).toEqual([name, true])
    expect(await portreeve.visit('shop.apps.test')).toEqual({ status: 200, body: 'one' })
    // Containers that come and go make Chromium give up a request, which it says in the console.
    expect(faults.filter((fault) => !fault.includes(NETWORK_CHANGED))).toEqual([])
    await context.close()
  })

  it('writes variables that the repository suggests and that are pasted, deploys them, and tells what that changed', async () => {
    const [app] = (await portreeve.call('GET', '/api/apps?q=shop')).body.data
    const path = `/apps/${app.id}/variables`
    // What an attempt before this one saved is suggested no more.
    const saved = (await portreeve.call('GET', `/api/apps/${app.id}/env`)).body.data
    for (const { key } of saved) await portreeve.call('DELETE', `/api/apps/${app.id}/env/${key}`)
    await make(`/api/apps/${app.id}/env`, { key: 'GREETING', value: 'hello' })
    const { page, open, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    await open(path)
    await page.getByRole('button', { name: 'Add WHO' }).click()
    await page
      .getByLabel('Value', { exact: true })
      .last()
      .evaluate((cell) => {
        const clipboardData = new DataTransfer()
        clipboardData.setData('text/plain', 'PLAN=small\nCERT="one\ntwo"\n')
        cell.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
      })
    await page.getByText('3 variables added').waitFor()
    await page.getByRole('button', { name: 'Save and deploy' }).click()
    await page.waitForURL('**/deployments/dep_*')
    await portreeve.untilDeployment(page.url().split('/').at(-1)!)
    const { body } = await portreeve.call('GET', `/api/apps/${app.id}/env`)
    expect(body.data).toMatchObject([
      { key: 'CERT', value: 'one\ntwo' },
      { key: 'GREETING' },
      { key: 'PLAN', value: 'small' },
      { key: 'WHO', value: 'world', comment: 'Who is greeted' },
    ])
    await page
      .getByRole('list', { name: 'Steps' })
      .getByText(/last good/)
      .first()
      .waitFor()
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.waitForURL('**?compare=dep_*')
    await page.getByRole('definition').getByText('small').waitFor()
    await page.reload()
    await page.getByRole('table', { name: 'Durations' }).waitFor()
    await context.close()

    const looking = await visit(browser, portreeve, WIDE, viewer.cookie)
    await looking.open(path)
    await looking.page.getByRole('cell', { name: 'PLAN', exact: true }).waitFor()
    const writes = looking.page.getByRole('button', { name: /Save and deploy|Add variable|Add all/ })
    expect(await writes.count()).toBe(0)
    await looking.context.close()
  })

  it('sets the limits of a project, and deletes an app with its volumes and without a final backup', async () => {
    const name = `limited-${randomBytes(3).toString('hex')}`
    const project = await make('/api/projects', { name })
    const app = await make('/api/apps', { name, source: 'upload', project_id: project.id })
    const { page, open, faults, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    await open(`/projects/${project.id}/settings`)
    await page.getByLabel('Memory (GiB)').fill('0.5')
    await page.getByLabel('Memory (GiB)').press('Enter')
    await page.getByText('Saved.').waitFor()
    const { body } = await portreeve.call('GET', `/api/projects/${project.id}`)
    expect(body.data.quotas).toEqual({ memory_bytes: 2 ** 29 })
    await open(`/apps/${app.id}/settings`)
    await page.getByRole('button', { name: `Delete ${name}…` }).click()
    await page.getByText('A final backup of its configuration and variables').waitFor()
    await page.getByLabel('Delete its volumes as well').check()
    await page.getByLabel('Delete without a final backup').check()
    expect(await page.getByText('A final backup of its').count()).toBe(0)
    const asked = page.waitForRequest((request) => request.method() === 'DELETE')
    await page.getByLabel(`Type ${name} to confirm`).fill(name)
    await page.getByLabel(`Type ${name} to confirm`).press('Enter')
    expect(new URL((await asked).url()).search).toBe('?volumes=true&skip_backup=true')
    await page.waitForURL('**/apps')
    expect(faults.filter((fault) => !fault.includes(NETWORK_CHANGED))).toEqual([])
    await context.close()
  })
  it('offers nothing for the only server that needs another one', async () => {
    const { page, open, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    await open('/nodes')
    await page.getByText('Engine last answered').waitFor()
    expect(await page.getByRole('button', { name: /drain|take work/i }).count()).toBe(0)
    await context.close()
  })
  it('keeps the password where the code of a second factor was mistyped', async () => {
    const person = await joinTeam(portreeve, `phone-${randomBytes(3).toString('hex')}`, 'reader')
    const { page, open, context } = await visit(browser, portreeve, WIDE, person.cookie)
    await open('/profile/two-factor')
    await page.getByRole('button', { name: 'Set up' }).click()
    const code = page.getByRole('textbox', { name: 'Code' })
    await code.waitFor()
    const secret = /\b[A-Z2-7]{32}\b/.exec(await page.getByRole('main').innerText())![0]
    await code.fill(await generate({ secret }))
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByRole('button', { name: 'I have kept them' }).click()
    await page.getByLabel('Password').fill('a password of this person')
    await code.fill('000000')
    await page.getByRole('button', { name: 'New recovery codes' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Password').inputValue()).toBe('a password of this person')
    await context.close()
  })
  it('leads from the palette to whatever can be added', async () => {
    const { page, open, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    await open('/')
    const forms = {
      'Back up now': 'Back up now',
      'Add a backup schedule': 'Add a backup schedule',
      'Add a backup destination': 'Add a destination',
      'Add a domain': 'Add a domain',
      'Add a redirect': 'Add a redirect',
      'Add a cron job': 'Add a cron job',
      'Add a registry': 'Add a registry',
      'Add a catalogue of templates': 'Add a catalogue',
    }
    for (const [entry, form] of Object.entries(forms)) {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Search or go to' }).fill(entry)
      await page.getByRole('option', { name: entry }).click()
      await page.getByRole('dialog', { name: form }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog', { name: form }).waitFor({ state: 'detached' })
    }
    await context.close()
  })
  it('edits a webhook, an alert rule and a schedule from what they hold, and says which entry of a list is wrong', async () => {
    const config = { url: 'https://chat.example.com/hook' }
    const events = ['alert.*']
    const hook = await make('/api/webhooks', { kind: 'notification', provider: 'slack', config, events })
    const { page, open, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    await open(`/webhooks/${hook.id}`)
    await page.getByRole('button', { name: 'Edit slack' }).click()
    const listed = page.getByLabel('Events')
    expect(await listed.inputValue()).toBe('alert.*')
    await listed.fill('alert.*\nnonsense')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Entry 2 must be an event such as').waitFor()
    await listed.fill('alert.*\ncron.failed')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('alert.*, cron.failed').waitFor()
    await open('/monitoring/alerts')
    await page.getByRole('button', { name: 'Edit Disk above 85 %' }).click()
    await page.getByLabel('Threshold').fill('80')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Disk in use (%) above 80 for 60 s').waitFor()
    const rest = {
      target: 'platform',
      cron: '30 4 * * *',
      retention: { count: 7, weekly: 4 },
      enabled: false,
    }
    const [local] = (await portreeve.call('GET', '/api/storage-providers')).body.data
    await portreeve.call('PUT', `/api/storage-providers/${local.id}`, { passphrase: ADMIN.password })
    await make('/api/backup-schedules', { name: 'Nightly', ...rest })
    await open('/backups/schedules')
    await page.getByRole('button', { name: 'Edit Nightly' }).click()
    await page.getByLabel('Keep the last').fill('3')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    const [schedule] = (await portreeve.call('GET', '/api/backup-schedules')).body.data
    expect(schedule).toMatchObject({ ...rest, retention: { count: 3, weekly: 4 } })
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await context.close()
  })
  it('says of an app that sleeps that it sleeps, and what wakes it', async () => {
    const [app] = (await portreeve.call('GET', '/api/apps?q=shop')).body.data
    await portreeve.untilApp(app.id, 'running')
    const scale = (replicas: number) => portreeve.call('PUT', `/api/apps/${app.id}/scaling`, { replicas })
    expect((await scale(0)).status).toBe(200)
    const { page, open, context } = await visit(browser, portreeve, WIDE, viewer.cookie)
    await open(`/apps/${app.id}`)
    await page.getByText('The app is asleep').waitFor()
    expect((await scale(1)).status).toBe(200)
    await page.getByRole('table', { name: 'Instances' }).getByText('web 1').waitFor()
    await context.close()
  })

  // Apart from the walk, so that a second attempt of that does not meet what the first one made.
  it('takes names that look like markup and are as long as they may be', async () => {
    const [app] = (await portreeve.call('GET', '/api/apps?q=shop')).body.data
    samples.apps = app.id
    samples.nodes = (await portreeve.call('GET', '/api/nodes')).body.data[0].id
    const project = await make('/api/projects', { name: HOSTILE.slice(0, 60), description: HOSTILE })
    samples.projects = (await portreeve.call('GET', `/api/apps/${app.id}`)).body.data.project_id
    await make('/api/ssh-keys/generate', { name: HOSTILE })
    await make('/api/git-credentials', {
      name: HOSTILE,
      host: `${'w'.repeat(60)}.example.com`,
      token: 'a-token-of-some-length',
      project_id: project.id,
    })
    const domain = await make('/api/domains', {
      app_id: app.id,
      hostname: `${'w'.repeat(60)}.${'w'.repeat(60)}.example.com`,
    })
    samples.domains = domain.id
    await make('/api/redirects', { domain_id: domain.id, from: `/${'a'.repeat(150)}`, to: '/new' })
    await make('/api/auth/api-keys', { name: HOSTILE, scope: 'read' })
    const job = { app_id: app.id, name: HOSTILE, expression: '@yearly', command: HOSTILE }
    samples['cron-jobs'] = (await make('/api/cron-jobs', job)).id
    const volume = await make('/api/volumes', { name: 'w'.repeat(63), access: 'shared' })
    await make(`/api/apps/${app.id}/mounts`, { path: `/${'w'.repeat(120)}`, volume_id: volume.id })
    await make('/api/team/members', { email: `${'w'.repeat(60)}@example.com` })
    const backup = await make('/api/backups', { target: 'volume', target_id: volume.id })
    samples.backups = backup.id
    samples.databases = (await make('/api/databases', { name: 'w'.repeat(40), engine: 'postgres' })).id
    const link = { app_id: app.id, key: `DATABASE_${'W'.repeat(60)}` }
    await make(`/api/databases/${samples.databases}/links`, link)
    const hook = { kind: 'deployment', app_id: app.id, name: HOSTILE.slice(0, 60) }
    samples.webhooks = (await make('/api/webhooks', hook)).id
    const look = { kind: 'http', name: 'w'.repeat(40), target: 'https://example.com/' }
    samples.uptime = (await make('/api/monitoring/uptime', look)).id
    samples.jobs = (await portreeve.call('GET', '/api/system/jobs')).body.data[0].id
    samples.templates = 'ackee'
  })

  it('shows below the variables of an app what linked databases give it, masked', async () => {
    const { page, open, context } = await visit(browser, portreeve, WIDE, viewer.cookie)
    await open(`/apps/${samples.apps}/variables`)
    const table = page.getByRole('table', { name: 'Variables from linked databases' })
    const given = table.getByRole('row').nth(1)
    expect(await given.getByRole('cell').first().innerText()).toMatch(/^DATABASE_W+$/)
    expect(await given.getByRole('cell').nth(1).innerText()).toBe('••••••••')
    await given.getByRole('link', { name: 'w'.repeat(40) }).click()
    await page.waitForURL(`**/databases/${samples.databases}`)
    await context.close()
  })

  it('shows every page without a barrier, a fault, markup out of names or a bar to scroll sideways, to whoever looks', async () => {
    const paths = [
      ...addresses(samples),
      '/apps?status=failed',
      `/deployments/${await failedDeployment()}`,
      '/no/such/page',
      '/explorer?operation=post--api-apps',
    ]
    expect(paths.length).toBeGreaterThan(25)

    const walks: [string, Person, readonly string[]][] = [
      ['administrator', admin, paths],
      ['viewer', viewer, paths],
      ['outsider', outsider, paths.filter((path) => !/_/.test(path))],
    ]
    const problems: string[] = []
    for (const [who, person, list] of walks) problems.push(...(await walkTogether(who, person, list)))
    expect(problems).toEqual([])
    // Hundreds of looks; each page has a limit of its own, so that this one only ends what hangs.
  }, 900_000)

  it('shows a log of 100,000 lines with at most 200 of them in the page', async () => {
    const file = join(portreeve.data_directory, 'logs/deployments', `${samples.deployments}.ndjson`)
    const kept = readFileSync(file, 'utf8').trim().split('\n').length
    const at = new Date().toISOString()
    const lines = Array.from({ length: 100_000 }, (_, index) =>
      JSON.stringify({
        seq: kept + index + 1,
        at,
        step: 'build',
        stream: 'stdout',
        text: `line ${index + 1}`,
      }),
    )
    appendFileSync(file, `${lines.join('\n')}\n`)
    const { page, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    await page.goto(`${portreeve.url}/deployments/${samples.deployments}`)
    const log = page.getByRole('log')
    await log.getByText('line 100000', { exact: true }).waitFor({ timeout: 60_000 })
    expect(await log.locator('time').count()).toBeLessThanOrEqual(200)
    await log.evaluate((box) => (box.scrollTop = box.scrollHeight / 2))
    await page.getByRole('button', { name: 'To the end' }).waitFor()
    expect(await log.locator('time').count()).toBeLessThanOrEqual(200)
    await page.getByLabel('Text or /pattern/').fill('/line 4242\\d$/')
    await log.getByText('line 42421', { exact: true }).waitFor()
    expect(await log.locator('time').count()).toBe(10)
    await page.goto(`${portreeve.url}/deployments/${samples.deployments}?line=${kept + 50_000}`)
    const sought = log.getByText('line 50000', { exact: true })
    await sought.waitFor({ timeout: 60_000 })
    expect(await sought.isVisible()).toBe(true)
    expect(await log.locator('[aria-pressed=true]').count()).toBe(1)
    await context.close()
  })

  it('holds no more memory after another 100,000 lines have come, once a log is as long as is kept', async () => {
    const deployment = await failedDeployment()
    const { page, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    const streamed = await pretendToStream(page, `deployments/${deployment}`)
    await page.goto(`${portreeve.url}/deployments/${deployment}`)
    const log = page.getByRole('log')
    await log.getByText('missing.js').first().waitFor()
    await expect.poll(streamed.connections, { timeout: 30_000 }).toBe(1)
    const empty = await streamed.heapMib()
    const stream = async (from: number, count: number) => {
      await streamed.lines(from, count)
      await log.getByText(`streamed ${from + count - 1}`, { exact: true }).waitFor({ timeout: 60_000 })
      return streamed.heapMib()
    }
    const full = await stream(10_001, 200_000)
    const later = await stream(210_001, 100_000)
    expect(full - empty).toBeGreaterThan(20)
    expect(later - full).toBeLessThan(5)
    expect(await log.locator('time').count()).toBeLessThanOrEqual(200)
    await context.close()
  })

  it.each([/\/assets\/index-[\w-]+\.js$/, /\/assets\/AppList-/, /\/api\/auth\/me$/])(
    'loads by itself again when %s did not arrive the first time',
    async (part) => {
      const { page, context } = await visit(browser, portreeve, WIDE, admin.cookie)
      let lost = 0
      await page.route(part, (route) => {
        lost += 1
        return lost === 1 ? route.abort('failed') : route.continue()
      })
      await page.goto(`${portreeve.url}/apps`)
      await page.getByRole('heading', { name: 'Apps', level: 1 }).waitFor({ timeout: 30_000 })
      expect(lost).toBeGreaterThan(1)
      expect(await page.getByText('did not load as a whole').isVisible()).toBe(false)
      await context.close()
    },
  )

  it('finishes what was asked for once, though an answer and the next page got lost on the way', async () => {
    const { name, url } = brokenRepository('lost')
    const { page, open, context } = await visit(browser, portreeve, WIDE, admin.cookie)
    let [answers, pages] = [0, 0]
    await page.route(/\/api\/apps$/, async (route) => {
      if (route.request().method() !== 'POST' || answers++ > 0) return route.continue()
      // The server has made the app; nobody hears of it.
      await route.fetch()
      await route.abort('failed')
    })
    await page.route(/\/assets\/DeploymentPage-/, (route) =>
      pages++ === 0 ? route.abort('failed') : route.continue(),
    )
    await open('/apps/new')
    await page.getByLabel('Git URL', { exact: true }).fill(url)
    await page.getByRole('button', { name: 'Create and deploy' }).click()
    await page.waitForURL('**/deployments/dep_*')
    await page.getByRole('heading', { level: 1, name: 'Deployment 1' }).waitFor()
    expect([answers, pages]).toEqual([2, 2])
    expect((await portreeve.call('GET', `/api/apps?q=${name}`)).body.total).toBe(1)
    expect(await page.getByText(/was upgraded|has failed/).count()).toBe(0)
    await context.close()
  })

  it('keeps what was typed over a restart of the server, an ended session and a new login', async () => {
    // A session and a command of its own, so that a second attempt does not meet what the first one
    // ended.
    const { cookie } = await enter(portreeve, ADMIN.email, ADMIN.password)
    const command = `node other-${randomBytes(4).toString('hex')}.js`
    const { page, open, context } = await visit(browser, portreeve, WIDE, cookie)
    await open(`/apps/${samples.apps}/settings`)
    await page.getByLabel('Start command').fill(command)
    await portreeve.stop()
    await portreeve.start()
    await portreeve.call('PUT', `/api/apps/${samples.apps}`, { branch: 'main', watch_paths: ['src/**'] })
    await page.getByLabel('Watched paths').filter({ visible: true }).waitFor()
    await expect.poll(() => page.getByLabel('Watched paths').inputValue(), { timeout: 30_000 }).toBe('src/**')
    expect(await page.getByLabel('Start command').inputValue()).toBe(command)

    const { body } = await portreeve.call('GET', '/api/auth/sessions')
    for (const session of body.data)
      if (!session.current) await portreeve.call('DELETE', `/api/auth/sessions/${session.id}`)
    // The socket hears of the end: nobody has to try to save first.
    const dialog = page.getByRole('dialog', { name: 'Log in again' })
    // The address is known; typed into its field, the password would be read by whoever stands by.
    const isFocused = (field: HTMLElement) => field === document.activeElement
    await expect.poll(() => dialog.getByLabel('Password').evaluate(isFocused)).toBe(true)
    await dialog.getByLabel('Password').fill(ADMIN.password)
    await dialog.getByRole('button', { name: 'Log in' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await page.getByLabel('Start command').inputValue()).toBe(command)
    await page.getByRole('button', { name: 'Save' }).nth(1).click()
    await page.getByText('Saved.').waitFor()
    const saved = await portreeve.call('GET', `/api/apps/${samples.apps}`)
    expect(saved.body.data).toMatchObject({
      build: { start_command: command },
      watch_paths: ['src/**'],
    })
    await context.close()
  })

  it('asks every tab to log in again after a logout in one, and shows nothing of one person to the next', async () => {
    const { cookie } = await enter(portreeve, ADMIN.email, ADMIN.password)
    const { page, open, context } = await visit(browser, portreeve, WIDE, cookie)
    await open(`/apps/${samples.apps}`)
    const second = await context.newPage()
    await second.goto(portreeve.url)
    await second.getByRole('button', { name: 'Log out' }).click()
    await second.waitForURL('**/login')
    await page.getByRole('dialog', { name: 'Log in again' }).waitFor()
    // Somebody else logs in, and comes back to this tab.
    await context.addCookies([{ name: 'session', value: outsider.cookie, url: portreeve.url }])
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await page.getByText('You are in no project yet').waitFor()
    expect(await page.getByRole('navigation').getByText('Audit log').count()).toBe(0)
    await page.keyboard.press('Control+k')
    await page.getByRole('option', { name: /^Overview/ }).waitFor()
    expect(await page.getByRole('option', { name: /Recent$/ }).count()).toBe(0)
    await context.close()
  })

  it('is small: at most 150 kB before the first page, and 60 kB for any page, compressed', () => {
    const root = join(ROOT, '.output/public')
    const manifest = JSON.parse(readFileSync(join(root, '.vite/manifest.json'), 'utf8')) as Record<
      string,
      { file: string; isEntry?: boolean; imports?: string[] }
    >
    const reached = (name: string, seen = new Set<string>()): Set<string> => {
      if (seen.has(name)) return seen
      seen.add(name)
      for (const one of manifest[name]!.imports ?? []) reached(one, seen)
      return seen
    }
    const size = (name: string) => gzipSync(readFileSync(join(root, manifest[name]!.file))).length
    const entries = Object.keys(manifest).filter((name) => manifest[name]!.isEntry)
    expect(entries.sort()).toEqual(['index.html', 'src/boot.ts'])
    const initial = new Set(entries.flatMap((name) => [...reached(name)]))
    const sum = (names: Iterable<string>) => [...names].reduce((total, name) => total + size(name), 0)
    expect(sum(initial)).toBeLessThanOrEqual(150_000)
    const large = Object.keys(manifest)
      .filter((name) => /\/pages\//.test(name))
      .map((name) => [name, sum([...reached(name)].filter((one) => !initial.has(one)))] as const)
      .filter(([, bytes]) => bytes > 60_000)
    expect(large).toEqual([])
  })
})

/**
 * Answers 403 and 404 are what a person without the right sees, and 404 what does not exist; the
 * browser tells them on its console, sometimes only once the next page is open: the fault names
 * what was asked for.
 */
const isRefusal = (fault: string, person: Person, path: string) =>
  (person !== admin || path.includes(UNKNOWN) || fault.includes(UNKNOWN)) && /status of (403|404)/.test(fault)
