import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

const SECRET = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'
let api: TestApi
let app_id: string
let project_id: string
let env: string
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
  commitShop(api, 'one')
  project_id = api.services.http.default_project()
  app_id = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL })).body.data.id
  env = `/api/apps/${app_id}/env`
})
afterEach(() => api.close())
const developer = () => api.as('developer')
const add = (body: object) => developer().post(env, body)
const share = (variables: object[]) => developer().put(`/api/projects/${project_id}/env`, { variables })
const audited = () =>
  (
    api.kernel.db
      .sql(`SELECT * FROM audit_log WHERE resource_type = 'variable' ORDER BY rowid`)
      .all() as object[]
  ).map((line) => JSON.stringify(line))

describe('a variable', () => {
  it('is added, listed in the order of keys, changed and deleted, with who did it and an event for each', async () => {
    const since = api.services.events.latest()
    const added = await add({ key: 'MODE', value: 'live', comment: 'the real one' })
    expect([added.status, added.body.data]).toEqual([
      201,
      expect.objectContaining({
        id: expect.stringMatching(/^env_/),
        app_id,
        key: 'MODE',
        value: 'live',
        secret: false,
        scopes: ['build', 'runtime'],
        comment: 'the real one',
        version: 1,
      }),
    ])
    await add({ key: 'ALPHA', value: '', scopes: ['runtime'] })
    const changed = await developer().put(`${env}/MODE`, { value: 'test', scopes: ['build'] })
    expect(changed.body.data).toMatchObject({
      value: 'test',
      scopes: ['build'],
      comment: 'the real one',
      version: 2,
    })
    expect(changed.body.data.history).toMatchObject([
      { version: 2, action: 'changed', fields: ['value', 'scopes'], by: { name: 'developer' } },
      { version: 1, action: 'created', by: { name: 'developer' } },
    ])
    const { body } = await api.as('viewer').get(env)
    expect(body.data.map(({ key, value }: { key: string; value: string }) => [key, value])).toEqual([
      ['ALPHA', ''],
      ['MODE', 'test'],
    ])
    const deleted = await developer().delete(`${env}/MODE`)
    expect(deleted.body).toEqual({ data: { id: added.body.data.id, deleted: true } })
    expect((await add({ key: 'MODE', value: 'again' })).body.data).toMatchObject({ version: 4 })
    expect(
      api
        .events(since)
        .filter(({ type }) => type === 'env.changed')
        .map(({ app_id: id, payload: { added: a, changed: c, removed: r } }) => [id, a, c, r]),
    ).toEqual([
      [app_id, ['MODE'], [], []],
      [app_id, ['ALPHA'], [], []],
      [app_id, [], ['MODE'], []],
      [app_id, [], [], ['MODE']],
      [app_id, ['MODE'], [], []],
    ])
  })
  it('that is a secret is masked for everybody, sealed in every row, and revealed with a line in the audit log', async () => {
    await add({ key: 'STRIPE_KEY', value: SECRET, secret: true, preview_value: `${SECRET}-preview` })
    for (const caller of ['owner', 'developer', 'viewer', 'admin'] as const) {
      const { text, body } = await api.as(caller).get(env)
      expect(body.data[0]).toMatchObject({ value: '********', preview_value: '********', secret: true })
      expect(text).not.toContain(SECRET)
    }
    const tables = ['variables', 'variable_versions', 'events', 'audit_log', 'idempotency']
    for (const table of tables)
      expect(JSON.stringify(api.kernel.db.sql(`SELECT * FROM ${table}`).all())).not.toContain(SECRET)
    const before = audited().length
    expect((await developer().get(`${env}/STRIPE_KEY/reveal`)).body.data).toEqual({
      key: 'STRIPE_KEY',
      value: SECRET,
      preview_value: `${SECRET}-preview`,
    })
    const lines = audited()
    expect([lines.length - before, lines.at(-1)]).toEqual([1, expect.stringContaining('variable.reveal')])
    expect(lines.join()).not.toContain(SECRET)
    for (const [caller, status] of [
      ['viewer', 403],
      ['read_key', 403],
      ['deploy_key', 403],
      ['outsider', 404],
    ] as const)
      expect([caller, (await api.as(caller).get(`${env}/STRIPE_KEY/reveal`)).status]).toEqual([
        caller,
        status,
      ])
    expect(audited()).toHaveLength(lines.length)
  })
  it.each([
    ['DB_PASSWORD', 'x', true],
    ['GITHUB_TOKEN', 'x', true],
    ['STRIPE_API_KEY', 'x', true],
    ['SECRET_KEY_BASE', 'x', true],
    ['REDIS_URL', 'redis://:hunter2hunter2@cache:6379', true],
    ['NEXT_PUBLIC_API_KEY', 'x', false],
    ['NEXT_PUBLIC_STRIPE', 'sk_live_0123456789ab', true],
    ['NEXT_PUBLIC_SUPABASE_ANON_KEY', 'eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2ln', false],
    ['SUPABASE', 'eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2ln', true],
    ['PUBLIC_URL', 'https://example.com:8080/a@b', false],
    ['KEYBOARD', 'x', false],
    ['OPENAI_KEY', `sk-proj-${'a1B2'.repeat(10)}`, true],
    ['CLAUDE', `sk-ant-api03-${'a1B2'.repeat(10)}`, true],
    ['NPM_AUTH', `npm_${'a1B2'.repeat(9)}`, true],
    ['DOCKER_HUB', `dckr_pat_${'a1B2'.repeat(7)}`, true],
    ['MODELS', `hf_${'aBcD'.repeat(8)}`, true],
    ['STRIPE_HOOK', `whsec_${'a1B2'.repeat(8)}`, true],
    ['SPACES', `dop_v1_${'0a'.repeat(32)}`, true],
    ['APP_KEY', `base64:${'a1B2'.repeat(10)}a1B=`, true],
    ['SLACK', 'https://hooks.slack.com/services/T0/B0/abcdefgh', true],
    ['DISCORD', 'https://discord.com/api/webhooks/1/abcdefgh', true],
    ['MAPS', `AIza${'a1B2_'.repeat(7)}`, true],
    ['NEXT_PUBLIC_MAPS', `AIza${'a1B2_'.repeat(7)}`, false],
    ['MODEL', 'sk-learn', false],
    ['CHAT', 'https://hooks.slack.com/', false],
  ])('is taken for a secret by its name or value when nobody says so: %s', async (key, value, secret) => {
    expect((await add({ key, value })).body.data.secret).toBe(secret)
    expect((await add({ key: `${key}_2`, value, secret: !secret })).body.data.secret).toBe(!secret)
  })
  it('is made plain only by who sends its values, and never without a line in the audit log', async () => {
    const preview_value = 'sk_test_of_previews'
    await add({ key: 'A_TOKEN', value: SECRET, preview_value })
    await share([{ key: 'B_TOKEN', value: SECRET }])
    const before = audited().length
    const change = (body: object) => developer().put(`${env}/A_TOKEN`, { secret: false, ...body })
    const details = { A_TOKEN: { secret: false } }
    const imported = (value: string) =>
      developer().post(`${env}/import`, { variables: { A_TOKEN: value }, details })
    const refused = [
      await change({}),
      await change({ value: '********' }),
      await change({ value: SECRET }),
      await change({ value: SECRET, preview_value: '********' }),
      await imported('********'),
      await imported(SECRET),
      await share([{ key: 'B_TOKEN', secret: false }]),
      await share([{ key: 'B_TOKEN', value: '********', secret: false }]),
    ]
    expect(refused.map(({ status, body }) => [status, body.error?.details[0].path])).toEqual([
      [422, 'value'],
      [422, 'value'],
      [422, 'preview_value'],
      [422, 'preview_value'],
      [422, 'variables: A_TOKEN'],
      [422, 'variables: A_TOKEN'],
      [422, 'variables.0.value'],
      [422, 'variables.0.value'],
    ])
    expect(refused.at(-1)!.body.error.message).toContain('must be sent again')
    for (const path of [env, `/api/projects/${project_id}/env`])
      expect((await api.as('viewer').get(path)).text).not.toMatch(/sk_(live|test)/)
    expect(audited()).toHaveLength(before)
    expect([
      (await change({ value: SECRET, preview_value: null })).status,
      (await share([{ key: 'B_TOKEN', value: SECRET, secret: false }])).status,
    ]).toEqual([200, 200])
  })
  it('keeps its secret when the mask is sent back, and counts no change', async () => {
    await add({ key: 'A_TOKEN', value: SECRET })
    const answer = await developer().put(`${env}/A_TOKEN`, { value: '********', comment: 'x' })
    expect(answer.body.data).toMatchObject({ version: 2, history: [{ fields: ['comment'] }, {}] })
    await developer().put(`${env}/A_TOKEN`, { value: '********', comment: 'x' })
    expect((await developer().get(`${env}/A_TOKEN/reveal`)).body.data.value).toBe(SECRET)
    expect((await developer().get(env)).body.data[0].version).toBe(2)
  })
  it.each([
    [{ key: 'PORTREEVE_APP', value: 'x' }, 'key'],
    [{ key: 'BUILDKIT_SYNTAX', value: 'evil/frontend' }, 'key'],
    [{ key: '__proto__', value: 'x' }, 'key'],
    [{ key: 'A', value: 'x', scopes: [] }, 'scopes'],
    [{ key: 'A', value: 'é'.repeat(60_000) }, 'value'],
    [{ key: 'A', value: '${{ project.GONE }}' }, 'value'],
    [{ key: 'A', value: 'x', preview_value: '${{ gone.DATABASE_URL }}' }, 'value'],
    [{ key: 'A', value: '${{ oops }}' }, 'value'],
  ])('that cannot be is refused with 422, and nothing is kept: %j', async (body, field) => {
    const since = api.services.events.latest()
    const answer = await add(body)
    expect([answer.status, answer.body.error.message.split(':')[0]]).toEqual([422, field])
    expect([api.events(since), (await developer().get(env)).body.total]).toEqual([[], 0])
  })
  it('of an app exists once, and one that is not there is a 404', async () => {
    await add({ key: 'A', value: 'x' })
    expect([
      (await add({ key: 'A', value: 'y' })).status,
      (await developer().put(`${env}/B`, { value: 'y' })).status,
      (await developer().delete(`${env}/B`)).status,
      (await developer().get(`${env}/constructor/reveal`)).status,
    ]).toEqual([409, 404, 404, 404])
  })
  it('goes with its app to another project, and away with it', async () => {
    await add({ key: 'A', value: 'x' })
    const other = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id
    for (const { id } of (await developer().get(`/api/apps/${app_id}/deployments`)).body.data)
      await developer().post(`/api/deployments/${id}/cancel`)
    expect((await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: other })).status).toBe(200)
    const rows = () => api.kernel.db.sql('SELECT project_id FROM variables').pluck().all()
    expect(rows()).toEqual([other])
    api.services.apps.remove(app_id)
    expect([rows(), api.kernel.db.sql('SELECT count(*) FROM variable_versions').pluck().get()]).toEqual([
      [],
      0,
    ])
  })
  it('that stands for more than any memory holds is refused by its field', async () => {
    const variables = Array.from({ length: 45 }, (_, at) => ({
      key: `V${at}`,
      value: at === 44 ? 'xxxxxxxxxx' : `\${{ project.V${at + 1} }}`.repeat(3),
    }))
    const { data } = (await developer().get(`/api/apps/${app_id}`)).body
    const answer = await api.as('owner').put(`/api/projects/${data.project_id}/env`, { variables })
    expect([answer.status, answer.body.error?.code]).toEqual([422, 'VALIDATION_ERROR'])
    expect(answer.body.error.message).toMatch(/^variables\.\d+\.value: stands for more than 4 MB/)
  })
  it('is one of 2,000 at most, so that a process can still start', async () => {
    const many = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`K${i}`, 'x']))
    const answer = await developer().post(`${env}/import`, { variables: many })
    expect([answer.status, answer.body.error.message]).toEqual([
      409,
      expect.stringContaining('2000 variables'),
    ])
    expect((await developer().get(env)).body.total).toBe(0)
  })
})

describe('a database of the project', () => {
  it('is named in a value, and gives its connection to the next release as a secret; a link does so by itself', async () => {
    const made = await developer().post('/api/databases', { name: 'orders', engine: 'postgres' })
    expect(made.status).toBe(201)
    expect((await add({ key: 'URL', value: '${{ orders.DATABASE_URL }}?pool=5' })).status).toBe(201)
    const unknown = await add({ key: 'B', value: '${{ invoices.DATABASE_URL }}' })
    expect([unknown.status, unknown.body.error.message]).toEqual([
      422,
      expect.stringContaining('no database invoices'),
    ])
    expect(
      (await developer().post(`/api/databases/${made.body.data.id}/links`, { app_id, key: 'LINKED' })).status,
    ).toBe(201)
    const release = api.services.env.forRelease({ id: app_id, project_id })
    expect(release.URL).toMatchObject({
      value: expect.stringMatching(/^postgres.*:\/\/.*\?pool=5$/),
      secret: true,
    })
    expect(release.LINKED).toMatchObject({
      value: expect.stringMatching(/^postgres/),
      secret: true,
      build: false,
    })
    expect(api.services.env.secretValues({ id: app_id, project_id })).toContain(release.URL!.value)
    await add({ key: 'LINKED', value: 'of my own' })
    expect(api.services.env.forRelease({ id: app_id, project_id }).LINKED).toMatchObject({
      value: 'of my own',
    })
  })
})

describe('an import', () => {
  it('merges or replaces, and reports every key in one list', async () => {
    await add({ key: 'KEEP', value: '1' })
    await add({ key: 'SAME_TOKEN', value: SECRET, comment: 'kept', scopes: ['runtime'] })
    await add({ key: 'OTHER', value: '1' })
    const text = `KEEP=2\nexport SAME_TOKEN='${SECRET}'\nNEW="one\ntwo" # three\n`
    expect((await developer().post(`${env}/import`, { text })).body.data).toEqual({
      added: ['NEW'],
      changed: ['KEEP'],
      removed: [],
      unchanged: ['SAME_TOKEN'],
    })
    expect((await developer().post(`${env}/import`, { text, mode: 'replace' })).body.data).toEqual({
      added: [],
      changed: [],
      removed: ['OTHER'],
      unchanged: ['KEEP', 'SAME_TOKEN', 'NEW'],
    })
    const { body } = await developer().get(env)
    expect(body.data).toMatchObject([
      { key: 'KEEP', value: '2' },
      { key: 'NEW', value: 'one\ntwo' },
      { key: 'SAME_TOKEN', comment: 'kept', scopes: ['runtime'], version: 1 },
    ])
  })
  it('says what its sender has read, and changes nothing when somebody else has changed that meanwhile', async () => {
    const send = async (body: object) => {
      const { status, body: answer } = await developer().post(`${env}/import`, body)
      return [status, answer.error?.message ?? answer.data]
    }
    await send({ text: 'A=1\nB=2' })
    const versions = { A: 1, B: 1 }
    await send({ text: 'A=theirs' })
    const changed = [412, expect.stringContaining('A was changed since the variables were read')]
    expect(await send({ text: 'A=mine\nB=2', versions })).toEqual(changed)
    expect(await send({ text: 'A=mine\nB=2', mode: 'replace', versions })).toEqual(changed)
    await send({ text: 'C=theirs' })
    const added = { text: 'A=mine', mode: 'replace', versions: { A: 2, B: 1 } }
    expect(await send(added)).toEqual([412, expect.stringContaining('C was added')])
    expect(await send({ ...added, mode: 'merge' })).toEqual([
      200,
      expect.objectContaining({ changed: ['A'] }),
    ])
  })
  it('says of single variables what differs from the others', async () => {
    await add({ key: 'OLD', value: '1', comment: 'before', scopes: ['build'] })
    const { body } = await developer().post(`${env}/import`, {
      variables: { OLD: '2', NEW: SECRET, PLAIN: '3' },
      scopes: ['runtime'],
      details: {
        OLD: { comment: null },
        NEW: { secret: true, scopes: ['build', 'runtime'], comment: 'after' },
      },
    })
    expect(body.data).toMatchObject({ added: ['NEW', 'PLAIN'], changed: ['OLD'] })
    expect((await developer().get(env)).body.data).toMatchObject([
      { key: 'NEW', value: '********', secret: true, scopes: ['build', 'runtime'], comment: 'after' },
      { key: 'OLD', value: '2', scopes: ['runtime'], comment: null },
      { key: 'PLAIN', value: '3', secret: false, scopes: ['runtime'] },
    ])
    const stray = { variables: { OLD: '3' }, details: { ODL: { comment: 'x' } } }
    expect((await developer().post(`${env}/import`, stray)).body.error.details).toEqual([
      { path: 'details.ODL', message: 'is said of a variable that is not among those of the import.' },
    ])
  })
  it('with one bad line names it and applies nothing', async () => {
    await add({ key: 'OLD', value: '1' })
    const before = api.services.events.latest()
    const answer = await developer().post(`${env}/import`, {
      text: `A=1\nOLD=2\nnot ${SECRET}\nB-C=3\nPORTREEVE_X=1\n`,
      mode: 'replace',
    })
    expect([answer.status, answer.body.error.message]).toEqual([
      422,
      expect.stringMatching(/^text: line 3 is no/),
    ])
    expect(
      answer.body.error.details.map(({ message }: { message: string }) => /line \d/.exec(message)![0]),
    ).toEqual(['line 3', 'line 4', 'line 5'])
    expect(answer.text).not.toContain(SECRET)
    expect([api.services.events.latest(), (await developer().get(env)).body.data]).toMatchObject([
      before,
      [{ key: 'OLD', value: '1' }],
    ])
  })
  it('needs a text or an object', async () => {
    expect((await developer().post(`${env}/import`, {})).status).toBe(422)
    expect((await developer().post(`${env}/import`, { text: 'A=1', variables: { A: '1' } })).status).toBe(422)
    expect(
      (await developer().post(`${env}/import`, { variables: { 'A-B': '1' } })).body.error.details,
    ).toMatchObject([{ path: 'variables.A-B' }])
  })
  it('of 1,000 variables is one event and one audit line, and exports as it was', async () => {
    const text = Array.from(
      { length: 1000 },
      (_, i) => `KEY_${String(i).padStart(4, '0')}='value ${i} # x'\n`,
    ).join('')
    const since = api.services.events.latest()
    const lines = audited().length
    expect((await developer().post(`${env}/import`, { text })).body.data.added).toHaveLength(1000)
    expect([api.services.events.latest() - since, audited().length - lines]).toEqual([1, 1])
    expect((await developer().get(`${env}/export`)).text).toBe(text)
  })
})

describe('an export', () => {
  it('has secrets as comments, and in clear with a line in the audit log', async () => {
    await add({ key: 'MODE', value: 'live' })
    await add({ key: 'A_TOKEN', value: SECRET })
    const masked = await developer().get(`${env}/export`)
    expect(masked.text).toBe('# A_TOKEN is a secret; reveal=true writes it.\nMODE=live\n')
    expect(masked.headers.get('content-type')).toContain('text/plain')
    const before = audited().length
    const shown = await developer().get(`${env}/export?reveal=true`)
    expect(shown.text).toBe(`A_TOKEN=${SECRET}\nMODE=live\n`)
    expect(audited().slice(before)).toEqual([expect.stringContaining('variable.export')])
    expect([
      (await api.as('viewer').get(`${env}/export`)).status,
      (await api.as('read_key').get(`${env}/export?reveal=true`)).status,
      (await api.as('read_key').get(`${env}/export`)).status,
    ]).toEqual([403, 403, 200])
  })
})

describe('an export that is imported in the place of all', () => {
  it.each(['', '?reveal=true', '?masked=true'])(
    'leaves variables alone whose values a dotenv file cannot write (%s)',
    async (query) => {
      const value = `'"\` and \\`
      await add({ key: 'QUOTES', value, secret: false })
      const { text } = await developer().get(`${env}/export${query}`)
      const taken = await developer().post(`${env}/import`, { text, mode: 'replace' })
      expect(taken.body.data.removed).toEqual([])
      expect((await developer().get(env)).body.data).toMatchObject([{ key: 'QUOTES', value }])
    },
  )
  it('leaves the secrets that it only names, and removes what it does not name', async () => {
    await add({ key: 'MODE', value: 'live' })
    await add({ key: 'OLD', value: 'x' })
    await add({ key: 'A_TOKEN', value: SECRET })
    const { text } = await developer().get(`${env}/export`)
    const { data } = (
      await developer().post(`${env}/import`, { text: text.replace('OLD=x\n', ''), mode: 'replace' })
    ).body
    expect(data).toMatchObject({ removed: ['OLD'] })
    expect((await developer().get(`${env}/export?reveal=true`)).text).toBe(`A_TOKEN=${SECRET}\nMODE=live\n`)
  })
  it('of another app becomes no value by its masks: they stand for what is stored here', async () => {
    await add({ key: 'A_TOKEN', value: SECRET })
    const { text } = await developer().get(`${env}/export?masked=true`)
    const other = { name: 'other', git_url: SHOP_URL }
    const { id } = (await developer().post('/api/apps', other)).body.data
    const elsewhere = `/api/apps/${id}/env`
    const refused = { error: { message: expect.stringContaining('is a mask, but nothing is stored') } }
    const take = () => developer().post(`${elsewhere}/import`, { text, mode: 'merge' })
    expect(await take()).toMatchObject({ status: 422, body: refused })
    // A plain value is not written over by the mask of somebody's secret.
    const plain = { key: 'A_TOKEN', value: 'plain', secret: false }
    expect((await developer().post(elsewhere, plain)).status).toBe(201)
    expect(await take()).toMatchObject({ status: 422, body: refused })
    const masked = { value: '********', secret: true }
    const made = await developer().post(elsewhere, { key: 'B_TOKEN', ...masked })
    expect(made).toMatchObject({ status: 422, body: refused })
    expect(await share([{ key: 'S_TOKEN', ...masked }])).toMatchObject({ status: 422, body: refused })
  })
  it('is a text to edit with masks in the place of secrets, which keep them', async () => {
    await add({ key: 'MODE', value: 'live' })
    await add({ key: 'A_TOKEN', value: SECRET })
    const { text } = await developer().get(`${env}/export?masked=true`)
    expect(text).toBe('A_TOKEN=********\nMODE=live\n')
    const edited = { text: text.replace('live', 'test'), mode: 'replace' }
    const { data } = (await developer().post(`${env}/import`, edited)).body
    expect(data).toMatchObject({ added: [], changed: ['MODE'], removed: [] })
    expect((await developer().get(`${env}/export?reveal=true`)).text).toBe(`A_TOKEN=${SECRET}\nMODE=test\n`)
  })
})

describe('variables that a project shares', () => {
  it('are replaced as a whole; a list can be sent back as it was read', async () => {
    expect(
      (
        await share([
          { key: 'A', value: '1' },
          { key: 'B_TOKEN', value: SECRET },
        ])
      ).body.data,
    ).toEqual({
      added: ['A', 'B_TOKEN'],
      changed: [],
      removed: [],
      unchanged: [],
    })
    const { body } = await api.as('viewer').get(`/api/projects/${project_id}/env`)
    expect(body.data).toMatchObject([
      { key: 'A', value: '1' },
      { key: 'B_TOKEN', value: '********', secret: true },
    ])
    const back = body.data.map(({ key, value, secret }: Record<string, unknown>) => ({ key, value, secret }))
    expect((await share(back)).body.data.unchanged).toEqual(['A', 'B_TOKEN'])
    expect((await share([{ key: 'B_TOKEN' }])).body.data).toMatchObject({
      removed: ['A'],
      unchanged: ['B_TOKEN'],
    })
    expect(api.services.env.forRelease({ id: app_id, project_id })).toEqual({})
  })
  it('are taken in by reference; a circle, an unknown name and the end of one in use are refused', async () => {
    await share([
      { key: 'HOST', value: 'example.com' },
      { key: 'URL', value: 'https://${{ project.HOST }}' },
    ])
    expect((await add({ key: 'API', value: '${{ project.URL }}/v1' })).status).toBe(201)
    expect(api.services.env.forRelease({ id: app_id, project_id })).toEqual({
      API: { value: 'https://example.com/v1', secret: false, build: true, runtime: true },
    })
    const circle = await share([
      { key: 'HOST', value: '${{ project.URL }}' },
      { key: 'URL', value: '${{ project.HOST }}' },
    ])
    expect([circle.status, circle.body.error.message]).toEqual([
      422,
      expect.stringContaining('leads in a circle'),
    ])
    const unknown = await share([{ key: 'URL', value: '${{ project.GONE }}' }])
    expect([unknown.status, unknown.body.error.message]).toEqual([
      422,
      expect.stringContaining('project.GONE'),
    ])
    const used = await share([{ key: 'HOST', value: 'x' }])
    expect([used.status, used.body.error.message]).toEqual([
      409,
      expect.stringContaining('API of the app shop'),
    ])
    expect((await api.as('viewer').get(`/api/projects/${project_id}/env`)).body.total).toBe(2)
    expect((await share([{ key: 'A' }])).status).toBe(422)
    expect(
      (
        await share([
          { key: 'A', value: '1' },
          { key: 'A', value: '2' },
        ])
      ).status,
    ).toBe(422)
  })
})
