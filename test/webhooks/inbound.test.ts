import { createHmac } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'first')
  app_id = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }))
    .body.data.id
  await api.services.jobs.idle()
})
afterEach(() => api.close())

const create = async (body: object, as: 'developer' | 'owner' = 'developer') =>
  (await api.as(as).post('/api/webhooks', body)).body.data
const pathOf = (url: string) => new URL(url).pathname
let deliveries = 0
/** Sends what GitHub would send, signed with the secret. */
const push = (hook: { url: string; secret: string }, change: object = {}, headers: object = {}) => {
  const raw = JSON.stringify({
    ref: 'refs/heads/main',
    before: '1'.repeat(40),
    after: commitShop(api, `change ${++deliveries}`),
    head_commit: { message: 'Change the shop' },
    commits: [{ id: 'x', message: 'Change', added: [], modified: ['server.js'], removed: [] }],
    repository: { clone_url: SHOP_URL, default_branch: 'main' },
    ...change,
  })
  return api.request('POST', pathOf(hook.url), {
    raw,
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': `delivery-${deliveries}`,
      'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(raw).digest('hex')}`,
      ...headers,
    },
  })
}
const latest = async () => (await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.data[0]

it('a hook of an app that is said to be in another project is refused instead of made where the app is', async () => {
  const other = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id
  const hook = { kind: 'deployment', app_id }
  const { status, body } = await api.as('admin').post('/api/webhooks', { ...hook, project_id: other })
  expect([status, body.error?.details]).toEqual([422, [{ path: 'project_id', message: expect.any(String) }]])
  const { project_id } = (await api.as('viewer').get(`/api/apps/${app_id}`)).body.data
  expect((await create({ ...hook, project_id })).project_id).toBe(project_id)
  const check = { name: 'Shop', target: 'https://shop.example.com', app_id, project_id: other }
  expect((await api.as('admin').post('/api/monitoring/uptime', check)).status).toBe(422)
})

describe('a push that a forge tells', () => {
  it('deploys that very commit, and the delivery log says so', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const { status, body } = await push(hook)
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ outcome: 'deployed', reason: null })
    await api.services.jobs.idle()
    const deployment = await latest()
    expect(deployment).toMatchObject({ id: body.data.deployment_ids[0], trigger: 'push', status: 'live' })
    const log = await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries`)
    expect(log.body.data[0]).toMatchObject({ direction: 'in', event: 'push', status: 'succeeded' })
  })
  it('is done once, however often the delivery comes', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    await push(hook, {}, { 'x-github-delivery': 'same' })
    const again = await push(hook, {}, { 'x-github-delivery': 'same' })
    expect(again.status).toBe(409)
    await api.services.jobs.idle()
    expect((await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.total).toBe(2)
  })
  it('is done once where a forge sends the delivery twice at the same time', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const after = commitShop(api, 'at once')
    const both = [1, 2].map(() => push(hook, { after }, { 'x-github-delivery': 'at-once' }))
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 409])
    await api.services.jobs.idle()
    expect((await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.total).toBe(2)
  })
  it('starts nothing where its secret is replaced after the signature was checked, while the rest is read', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const raw = JSON.stringify({
      ref: 'refs/heads/main',
      after: commitShop(api, 'read'),
      repository: { clone_url: SHOP_URL },
    })
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      'x-github-delivery': 'replaced',
      'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(raw).digest('hex')}`,
    }
    let is_replaced = false
    // What kind of event it is, is asked for once the signature was found to fit.
    const header = (name: string) => {
      if (name !== 'x-github-event') return headers[name]
      api.services.webhooks.change(api.actor('developer'), hook.id, { secret: 'quite another secret' })
      is_replaced = true
      return 'push'
    }
    const token = pathOf(hook.url).split('/').at(-1)!
    const received = api.services.webhooks.receive(token, Readable.from([Buffer.from(raw)]), header)
    await expect(received).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
    expect(is_replaced).toBe(true)
    expect((await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.total).toBe(1)
  })
  it('with a wrong signature is 401 and starts nothing', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const before = api.services.events.latest()
    for (const secret of ['', 'wrong', `${hook.secret} `])
      expect((await push({ ...hook, secret })).status).toBe(401)
    expect(api.events(before)).toEqual([])
  })
  it('with a wrong signature is told in the log of deliveries, in one row however often it comes, with nothing of it', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const log = async () => (await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries`)).body
    const refused = { direction: 'in', event: 'refused', status: 'failed', response_status: 401 }
    const forged = () => push({ ...hook, secret: 'wrong' }, { ref: 'canary' }, { 'x-github-event': 'canary' })
    await forged()
    await forged()
    await forged()
    const { data, total } = await log()
    expect({ total, data }).toMatchObject({ total: 1, data: [{ ...refused, attempts: 3 }] })
    expect(data[0].detail).toContain('secret')
    expect(JSON.stringify(data)).not.toContain('canary')
    const { body } = await api.as('developer').get(`/api/webhooks?app_id=${app_id}`)
    expect(body.data[0].last_delivery).toMatchObject({ status: 'failed' })
    await push(hook)
    await forged()
    expect((await log()).data).toMatchObject([
      { ...refused, attempts: 1 },
      { event: 'push', status: 'succeeded' },
      { ...refused, attempts: 3 },
    ])
    await api.services.jobs.idle()
    const again = await api
      .as('developer')
      .post(`/api/webhooks/${hook.id}/deliveries/${data[0].id}/redeliver`)
    expect(again.body.data).toMatchObject({ status: 'ignored', deployment_ids: [] })
  })
  it('T18: is 401 without a signature, with another algorithm, or with a part of it, and starts nothing', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const before = api.services.events.latest()
    const digest = 'a'.repeat(64)
    for (const signature of [
      '',
      'null',
      'sha256=',
      digest,
      `sha1=${digest.slice(0, 40)}`,
      `sha512=${digest}`,
      `sha256=${digest.slice(0, 63)}`,
      `SHA256 ${digest}`,
    ])
      expect((await push(hook, {}, { 'x-hub-signature-256': signature })).status, signature).toBe(401)
    expect(api.events(before)).toEqual([])
  })
  it('T18: has a secret of its own, which is never empty, and is read as its hook says, not as its headers do', async () => {
    const hooks = [
      await create({ kind: 'git', provider: 'github', app_id }),
      await create({ kind: 'git', provider: 'github', app_id }),
    ]
    const [first, second] = hooks
    expect(first.secret.length).toBeGreaterThanOrEqual(32)
    expect(first.secret).not.toBe(second.secret)
    for (const secret of ['', null]) {
      const made = { kind: 'git', provider: 'github', app_id, secret }
      expect((await api.as('developer').post('/api/webhooks', made)).body.data?.secret ?? 'refused').not.toBe(
        '',
      )
      await api.as('developer').put(`/api/webhooks/${first.id}`, { secret })
    }
    expect((await push({ ...first, secret: '' })).status).toBe(401)
    expect((await push({ ...second, secret: first.secret })).status).toBe(401)
    const raw = JSON.stringify({ ref: 'refs/heads/main', after: '2'.repeat(40) })
    const headers = { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': second.secret }
    const answer = await api.request('POST', pathOf(second.url), {
      raw,
      headers: { 'content-type': 'application/json', ...headers },
    })
    expect(answer.status).toBe(401)
  })
  it('T18: of 10 MB is judged by its signature, and one larger than forges send is 413; neither starts anything', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const before = api.services.events.latest()
    const send = (bytes: number) =>
      api.request('POST', pathOf(hook.url), {
        raw: JSON.stringify({ ref: 'x'.repeat(bytes) }),
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'push',
          'x-hub-signature-256': 'sha256=0',
        },
      })
    expect((await send(10_000_000)).status).toBe(401)
    expect((await send(26_300_000)).status).toBe(413)
    expect(api.events(before)).toEqual([])
  })
  it('to an unknown address is 404', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    expect((await push({ ...hook, url: 'http://x/api/webhooks/git/unknown' })).status).toBe(404)
    const deploy = await create({ kind: 'deployment', app_id })
    const other = deploy.url.replace('/deploy/', '/git/')
    expect((await push({ ...hook, url: other })).status).toBe(404)
  })
  it('about another repository is ignored with the reason', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const { body } = await push(hook, { repository: { clone_url: 'https://git.example.com/team/other.git' } })
    expect(body.data).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringContaining('another repository'),
    })
  })
  it('is ignored while auto_deploy is off', async () => {
    await api.as('developer').put(`/api/apps/${app_id}`, { auto_deploy: false })
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    expect((await push(hook)).body.data).toMatchObject({
      outcome: 'ignored',
      reason: expect.stringMatching(/a rollback turns it off.*in the settings of the app/),
    })
  })
  it('deploys every app of the project that is built from the repository', async () => {
    await api.as('developer').post('/api/apps', { name: 'second', git_url: SHOP_URL, soak_seconds: 0 })
    const hook = await create({ kind: 'git', provider: 'github' })
    expect((await push(hook)).body.data.deployment_ids).toHaveLength(2)
  })
  it('deploys the other apps where one may not be deployed now, and says why that one is not', async () => {
    const second = { name: 'second', git_url: SHOP_URL, soak_seconds: 0 }
    const { id } = (await api.as('developer').post('/api/apps', second)).body.data
    await api.services.jobs.idle()
    // As while it is being rolled back, for as long as the test goes on.
    api.fakes.engine.behave(() => true, { build_duration_ms: 600_000 })
    const slow = await api.as('developer').post(`/api/apps/${app_id}/deploy`, { no_cache: true })
    const rolling = slow.body.data.id
    api.kernel.db.sql(`UPDATE deployments SET trigger = 'rollback' WHERE id = ?`).run(rolling)
    const hook = await create({ kind: 'git', provider: 'github' })
    const { status, body } = await push(hook)
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ outcome: 'deployed', reason: expect.stringContaining('rolled back') })
    expect(body.data.deployment_ids).toHaveLength(1)
    const { data } = (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body
    expect(data[0].id).toBe(body.data.deployment_ids[0])
    const own = await create({ kind: 'git', provider: 'github', app_id })
    expect((await push(own)).body.data).toMatchObject({ outcome: 'ignored' })
    const log = await api.as('developer').get(`/api/webhooks/${own.id}/deliveries`)
    expect(log.body.data[0]).toMatchObject({
      status: 'ignored',
      detail: expect.stringContaining('rolled back'),
    })
    for (const one of [rolling, data[0].id]) await api.as('developer').post(`/api/deployments/${one}/cancel`)
    await api.services.jobs.idle()
  })
  it('through the hook of an app that is being deleted deploys no other app', async () => {
    await api.as('developer').post('/api/apps', { name: 'second', git_url: SHOP_URL, soak_seconds: 0 })
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    api.kernel.db.sql(`UPDATE apps SET status = 'deleting' WHERE id = ?`).run(app_id)
    expect((await push(hook)).body.data).toMatchObject({ outcome: 'ignored', deployment_ids: [] })
  })
  it('deploys an app that is a compose file of the repository, as any other', async () => {
    const stack = { name: 'stack', git_url: SHOP_URL, branch: 'main', source: 'compose' }
    const { id } = (await api.as('developer').post('/api/apps', stack)).body.data
    const hook = await create({ kind: 'git', provider: 'github', app_id: id })
    expect((await push(hook)).body.data).toMatchObject({
      outcome: 'deployed',
      deployment_ids: [expect.any(String)],
    })
  })
  it('as a form, as GitHub sends it on request, is understood', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const payload = JSON.stringify({
      ref: 'refs/heads/main',
      after: 'b'.repeat(40),
      repository: { clone_url: SHOP_URL },
    })
    const raw = new URLSearchParams({ payload }).toString()
    const { body } = await api.request('POST', pathOf(hook.url), {
      raw,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'x-github-event': 'push',
        'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(raw).digest('hex')}`,
      },
    })
    expect(body.data.outcome).toBe('deployed')
  })
  it('can be done again from the delivery log', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const { body } = await push(hook)
    await api.services.jobs.idle()
    const again = await api
      .as('developer')
      .post(`/api/webhooks/${hook.id}/deliveries/${body.data.delivery_id}/redeliver`)
    expect(again.body.data.deployment_ids).toHaveLength(1)
    expect(again.body.data.deployment_ids).not.toEqual(body.data.deployment_ids)
  })
  it('is kept in a few thousand characters, however much it says, and can still be done again', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    await api.as('developer').put(`/api/apps/${app_id}`, { watch_paths: ['server.js'] })
    const message = `Change ${'\u0001'.repeat(60_000)}`
    const modified = ['server.js', ...Array.from({ length: 2000 }, (_, at) => `a/${'b'.repeat(80)}/${at}`)]
    const commits = [{ id: 'x', message, added: [], modified, removed: [] }]
    const { body } = await push(hook, { head_commit: { message }, commits })
    expect(body.data.outcome).toBe('deployed')
    const { data } = (await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries`)).body
    expect(JSON.stringify(data[0].content).length).toBeLessThan(32_000)
    await api.services.jobs.idle()
    const path = `/api/webhooks/${hook.id}/deliveries/${body.data.delivery_id}/redeliver`
    const again = (await api.as('developer').post(path)).body.data
    expect(again.deployment_ids).toHaveLength(1)
  })
  it('is kept with what it told for the newest 200 of a hook', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    for (let call = 0; call < 202; call++) {
      api.kernel.clock.advance(1000)
      await push(hook, { ref: 'refs/tags/v1' })
    }
    const kinds = api.kernel.db
      .sql(`SELECT json_extract(content, '$.kind') FROM webhook_deliveries ORDER BY rowid`)
      .pluck()
      .all()
    expect(kinds).toEqual(['other', 'other', ...Array(200).fill('push')])
  })
  it('of more than 120 a minute is told to wait', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const answers = []
    for (let call = 0; call < 121; call++) answers.push((await push({ ...hook, secret: 'wrong' })).status)
    expect(answers.at(-1)).toBe(429)
  })
})

describe('a ping', () => {
  it('is answered, so that the forge shows a green mark', async () => {
    const hook = await create({ kind: 'git', provider: 'github', app_id })
    const { body } = await push(hook, { zen: 'Keep it logically awesome.' }, { 'x-github-event': 'ping' })
    expect(body.data).toMatchObject({ outcome: 'pong', deployment_ids: [] })
  })
})

describe('a deploy hook', () => {
  it('starts a deployment for whoever has its address, with any body or none', async () => {
    const hook = await create({ kind: 'deployment', app_id })
    const { status, body } = await api.request('POST', pathOf(hook.url))
    expect([status, body.data.outcome]).toEqual([200, 'deployed'])
    await api.services.jobs.idle()
    expect(await latest()).toMatchObject({ trigger: 'hook', status: 'live', created_by: null })
    const text = await api.request('POST', pathOf(hook.url), {
      raw: 'x=1',
      headers: { 'content-type': 'text/plain' },
    })
    expect(text.status).toBe(200)
  })
  it('shows its address at creation and after a rotation only', async () => {
    const hook = await create({ kind: 'deployment', app_id })
    const [listed] = (await api.as('developer').get('/api/webhooks')).body.data
    expect(listed.url).not.toContain(new URL(hook.url).pathname.split('/').at(-1))
    const rotated = (await api.as('developer').put(`/api/webhooks/${hook.id}`, { rotate: true })).body.data
    expect((await api.request('POST', pathOf(hook.url))).status).toBe(404)
    expect((await api.request('POST', pathOf(rotated.url))).status).toBe(200)
  })
  it('does nothing while it is off, and is gone once deleted', async () => {
    const hook = await create({ kind: 'deployment', app_id })
    await api.as('developer').put(`/api/webhooks/${hook.id}`, { enabled: false })
    expect((await api.request('POST', pathOf(hook.url))).body.data.outcome).toBe('ignored')
    await api.as('developer').delete(`/api/webhooks/${hook.id}`)
    expect((await api.request('POST', pathOf(hook.url))).status).toBe(404)
  })
  it('that is refused is told in the log of deliveries with its reason, and can be done again from there', async () => {
    const hook = await create({ kind: 'deployment', app_id })
    // As while it is being rolled back, for as long as the test goes on.
    api.fakes.engine.behave(() => true, { build_duration_ms: 600_000 })
    const rolling = (await api.as('developer').post(`/api/apps/${app_id}/deploy`, { no_cache: true })).body
      .data
    api.kernel.db.sql(`UPDATE deployments SET trigger = 'rollback' WHERE id = ?`).run(rolling.id)
    const log = async () => (await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries`)).body.data
    const { status, body } = await api.request('POST', `${pathOf(hook.url)}?branch=main`)
    expect(status).toBe(409)
    expect(await log()).toMatchObject([
      {
        ...{ direction: 'in', event: 'deploy', status: 'failed', response_status: 409 },
        detail: body.error.message,
        content: { branch: 'main' },
      },
    ])
    const [{ id }] = await log()
    await api.as('developer').post(`/api/deployments/${rolling.id}/cancel`)
    await api.services.jobs.idle()
    const again = await api.as('developer').post(`/api/webhooks/${hook.id}/deliveries/${id}/redeliver`)
    expect(again.body.data).toMatchObject({ status: 'succeeded', deployment_ids: [expect.any(String)] })
    await api.as('developer').post(`/api/deployments/${again.body.data.deployment_ids[0]}/cancel`)
    await api.services.jobs.idle()
  })
  it('that is called too often is told so in one entry, however often it is', async () => {
    const hook = await create({ kind: 'deployment', app_id })
    await api.as('developer').put(`/api/webhooks/${hook.id}`, { enabled: false })
    const answers = []
    for (let call = 0; call < 123; call++) answers.push((await api.request('POST', pathOf(hook.url))).status)
    expect(answers.slice(-4)).toEqual([200, 429, 429, 429])
    const { data, total } = (await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries`)).body
    expect([total, data[0]]).toMatchObject([
      121,
      { event: 'refused', status: 'failed', response_status: 429, attempts: 3 },
    ])
  })
  it('goes with its app', async () => {
    const hook = await create({ kind: 'deployment', app_id })
    await api.as('owner').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    expect((await api.request('POST', pathOf(hook.url))).status).toBe(404)
  })
})

describe('a hook of another project', () => {
  it('cannot be made for an app that the caller does not see', async () => {
    const { status } = await api.as('outsider').post('/api/webhooks', { kind: 'deployment', app_id })
    expect(status).toBe(404)
    expect((await api.as('viewer').post('/api/webhooks', { kind: 'deployment', app_id })).status).toBe(403)
  })
})

it('the address of a deploy hook is kept for no repeated request: it is itself the secret', async () => {
  const hook = { kind: 'deployment', app_id }
  const ask = () => api.as('developer').post('/api/webhooks', hook, { 'idempotency-key': 'deploy-hook' })
  const first = await ask()
  expect([first.status, first.body.data.url]).toEqual([201, expect.stringMatching(/deploy\/[\w-]{32}$/)])
  expect((await ask()).status).toBe(409)
})

describe('a push of Bitbucket, which tells of all that a push moved at once', () => {
  const SHA = 'a'.repeat(40)
  const moved = (type: string, name: string, hash: string | null = SHA) => ({
    old: { type, name },
    new: hash === null ? null : { type, name, target: { hash, message: 'Mend it' } },
  })
  const pushed = async (hook: { url: string; secret: string }, changes: object[]) => {
    const repository = {
      full_name: 'team/shop',
      links: { html: { href: SHOP_URL } },
      mainbranch: { name: 'main' },
    }
    const raw = JSON.stringify({ repository, push: { changes } })
    const { body } = await api.request('POST', pathOf(hook.url), {
      raw,
      headers: {
        'content-type': 'application/json',
        'x-event-key': 'repo:push',
        'x-request-uuid': `push-${++deliveries}`,
        'x-hub-signature': `sha256=${createHmac('sha256', hook.secret).update(raw).digest('hex')}`,
      },
    })
    return body.data
  }
  const made = () => create({ kind: 'git', provider: 'bitbucket', app_id })

  it.each([
    ['with a tag, as git push --follow-tags sends it', [moved('branch', 'main'), moved('tag', 'v1.0.0')]],
    ['with a tag before it', [moved('tag', 'v1.0.0'), moved('branch', 'main')]],
    ['with another branch', [moved('branch', 'main'), moved('branch', 'dev', 'b'.repeat(40))]],
    ['with a branch that was deleted', [moved('branch', 'old', null), moved('branch', 'main')]],
    ['with a branch of a name that git does not know', [moved('branch', '-x'), moved('branch', 'main')]],
  ])('deploys the branch of the app %s', async (_, changes) => {
    const { outcome, deployment_ids } = await pushed(await made(), changes)
    expect([outcome, deployment_ids.length]).toEqual(['deployed', 1])
    const { body } = await api.as('viewer').get(`/api/deployments/${deployment_ids[0]}`)
    expect(body.data.trigger).toBe('push')
  })
  it('deploys nothing where the branch of the app is not among them, and says why', async () => {
    const { outcome, reason } = await pushed(await made(), [moved('tag', 'v1'), moved('branch', 'dev')])
    expect([outcome, reason]).toEqual(['ignored', 'Tags are not deployed.'])
  })
  it('tells that the branch of the app was deleted, whatever else was moved', async () => {
    const { reason } = await pushed(await made(), [moved('tag', 'v1'), moved('branch', 'main', null)])
    expect(reason).toBe('The branch main was deleted.')
  })
})
