import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFakeMail, type FakeMail } from '#server/platform/mail/fake'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
})
afterEach(() => api.close())
const id = (caller: Parameters<TestApi['actor']>[0]) => api.actor(caller).user_id
const tokenOf = (link: string) => link.slice(link.indexOf('#') + 1)
const accept = (token: string, more = {}) =>
  api.request('POST', '/api/auth/invitations/accept', {
    body: { token, name: 'New Person', password: 'violet harbour eleven kites', ...more },
  })

describe('inviting', () => {
  it('shows the link once when no mail can be sent, and makes a user of the invited address', async () => {
    const project_id = api.services.http.default_project()
    const invited = await api.as('admin').post('/api/team/members', {
      email: ' Ada@Example.com ',
      role: 'member',
      projects: [{ project_id, role: 'developer' }],
    })
    expect(invited.status).toBe(201)
    expect(invited.body.data).toMatchObject({
      email: 'ada@example.com',
      sent: false,
      link: expect.stringMatching(/\/invitation#inv_\w+\.[\w-]{43}$/),
    })
    const { token } = invited.body.data
    expect(token).toBe(tokenOf(invited.body.data.link))
    expect(
      JSON.stringify((await api.as('admin').get('/api/team/members?status=invited')).body),
    ).not.toContain(token)
    expect(JSON.stringify(api.kernel.db.sql('SELECT * FROM invitations').all())).not.toContain(token)
    const joined = await accept(token)
    expect([joined.status, joined.body.data.email, joined.body.data.role]).toEqual([
      201,
      'ada@example.com',
      'member',
    ])
    const member = await api.as('admin').get(`/api/team/members/${joined.body.data.id}`)
    expect(member.body.data).toMatchObject({
      status: 'active',
      projects: [{ project_id, role: 'developer' }],
    })
    expect((await accept(token)).status).toBe(404)
  })
  it('is used up by one of two who accept at the same time', async () => {
    const invited = await api.as('admin').post('/api/team/members', { email: 'ada@example.com' })
    const answers = await Promise.all([
      accept(tokenOf(invited.body.data.link)),
      accept(tokenOf(invited.body.data.link)),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 404])
  })
  it('ends after a week, with a newer invitation, and when it is taken back', async () => {
    const first = tokenOf(
      (await api.as('admin').post('/api/team/members', { email: 'ada@example.com' })).body.data.link,
    )
    const second = tokenOf(
      (await api.as('admin').post('/api/team/members', { email: 'ada@example.com' })).body.data.link,
    )
    const replaced = await accept(first)
    expect([replaced.status, replaced.body.error.message]).toEqual([
      404,
      'A newer invitation was sent to this address. Use that one; this one ended with it.',
    ])
    expect((await accept(`${second.split('.')[0]}.x`)).body.error.message).toBe(replaced.body.error.message)
    api.fakes.clock.advance(7 * 86_400_000)
    expect((await accept(second)).status).toBe(404)
    const third = (await api.as('admin').post('/api/team/members', { email: 'ada@example.com' })).body.data
    expect((await api.as('admin').delete(`/api/team/members/${third.id}`)).status).toBe(200)
    expect((await accept(tokenOf(third.link))).status).toBe(404)
  })
  it.each([
    ['a common password', { password: '1234567890' }, 422],
    ["a role of one's own choice", { role: 'admin' }, 422],
    ['another address', { email: 'eve@example.com' }, 422],
  ])('does not accept with %s', async (_case, more, status) => {
    const invited = await api.as('admin').post('/api/team/members', { email: 'ada@example.com' })
    expect((await accept(tokenOf(invited.body.data.link), more)).status).toBe(status)
    expect(
      api.kernel.db
        .sql(`SELECT count(*) FROM users WHERE email IN ('ada@example.com', 'eve@example.com')`)
        .pluck()
        .get(),
    ).toBe(0)
  })
  it('leaves the attempts to log in alone while a password is looked for, and has a limit of its own', async () => {
    const invited = await api.as('admin').post('/api/team/members', { email: 'ada@example.com' })
    const weak = () => accept(tokenOf(invited.body.data.link), { password: '1234567890' })
    for (const status of [422, 422, 422, 422, 422, 429]) expect((await weak()).status).toBe(status)
    expect((await weak()).body.error.message).toBe(
      'Too many attempts from this address to accept an invitation. Wait a minute, then try again.',
    )
    expect(
      (
        await api.request('POST', '/api/auth/login', {
          body: { email: 'ada@example.com', password: 'wrong' },
        })
      ).status,
    ).toBe(401)
  })
  it('of the role owner is refused, and neither a sentence nor the document offers that role; a project may get an owner', async () => {
    const { paths, components } = (await api.request('GET', '/api/openapi.json', { as: 'viewer' })).body
    const named = (schema: any) => (schema.$ref ? components.schemas[schema.$ref.split('/').at(-1)] : schema)
    const asked = named(
      paths['/api/team/members'].post.requestBody.content['application/json'].schema,
    ).properties
    expect(named(asked.role).enum).toEqual(['admin', 'member', 'viewer'])
    expect(named(named(asked.projects).items).properties.role.enum).toEqual(['owner', 'developer', 'viewer'])
    const grant = { project_id: api.services.http.default_project(), role: 'owner' }
    expect(
      (await api.as('admin').post('/api/team/members', { email: 'eve@example.com', projects: [grant] })).body
        .data.projects,
    ).toEqual([grant])
    expect(
      (await api.as('admin').post('/api/team/members', { email: 'ada@example.com', role: 'owner' })).status,
    ).toBe(403)
    expect(
      (await api.as('admin').post('/api/team/members', { email: 'ada@example.com', role: 'boss' })).body.error
        .message,
    ).toBe('role: must be one of "admin", "member", "viewer".')
  })
  it('refuses an address that has an account', async () => {
    expect(
      (await api.as('admin').post('/api/team/members', { email: api.actor('owner').email })).status,
    ).toBe(409)
  })
})

describe('an invitation ends with the right of who sent it', () => {
  const invite = (caller: 'admin' | 'owner', more = {}) =>
    api.as(caller).post('/api/team/members', { email: 'ada@example.com', role: 'admin', ...more })
  const setRole = (caller: 'owner', role: string) =>
    api.as('admin').put(`/api/team/members/${id(caller)}`, { role })
  /** A second administrator, who invites somebody. */
  const invitedBySecond = async (): Promise<string> => {
    await setRole('owner', 'admin')
    const link = api.services.identity.invitations.create(
      { ...api.actor('owner'), role: 'admin' },
      { email: 'ada@example.com', role: 'admin', projects: [] },
    )
    return (await link).token!
  }
  it.each([
    ['was disabled', () => api.as('admin').put(`/api/team/members/${id('owner')}`, { status: 'disabled' })],
    ['was demoted', () => setRole('owner', 'member')],
    [
      'was removed',
      async () => {
        await api.as('admin').delete(`/api/team/members/${id('owner')}`)
      },
    ],
  ])('where an administrator %s', async (_case, end) => {
    const token = await invitedBySecond()
    await end()
    expect((await accept(token)).status).toBe(404)
    expect((await api.as('admin').get('/api/team/members?status=invited')).body.data).toEqual([])
    expect(
      api.kernel.db.sql('SELECT count(*) FROM users WHERE email = ?').pluck().get('ada@example.com'),
    ).toBe(0)
    const lines = (await api.as('admin').get('/api/audit-logs?action=member.invitation_revoke')).body.data
    expect(lines).toHaveLength(1)
  })
  it('and says so where it is still there', async () => {
    const token = await invitedBySecond()
    api.kernel.db.sql("UPDATE users SET role = 'member' WHERE id = ?").run(id('owner'))
    const refused = await accept(token)
    expect([refused.status, refused.body.error.message]).toEqual([
      404,
      'Who sent this invitation may not invite you to this any more. Ask an administrator for a new invitation.',
    ])
  })
  it('but not with another change of theirs', async () => {
    const token = await invitedBySecond()
    await api.as('admin').put(`/api/team/members/${id('owner')}`, { end_sessions: true })
    expect((await accept(token)).status).toBe(201)
  })
  it('also while the password of who accepts is worked out, and where a newer one promises less', async () => {
    const { token } = (await invite('admin')).body.data
    const late = expect(
      api.services.identity.invitations.accept(
        { token, name: 'Ada', password: 'violet harbour eleven kites' },
        { address: '198.51.100.7', id: 'req_late' },
      ),
    ).rejects.toMatchObject({ status: 404 })
    await invite('admin', { role: 'viewer' })
    await late
  })
  describe('of an owner', () => {
    const mail: FakeMail = createFakeMail('on')
    const members = () => `/api/projects/${api.services.http.default_project()}/members`
    beforeEach(async () => {
      await api.close()
      mail.sent.length = 0
      api = await createTestApi({ jobs: false, mail })
      await api.as('admin').put('/api/settings', { owners_may_invite: true })
      await api.as('owner').post(members(), { email: 'ada@example.com', role: 'owner' })
    })
    const sent = () => tokenOf(/\S+#\S+/.exec(mail.sent.at(-1)!.text)![0])
    it.each([
      ['is removed from the project', () => api.as('admin').delete(`${members()}/${id('owner')}`)],
      [
        'is no owner of it any more',
        () => api.as('admin').put(`${members()}/${id('owner')}`, { role: 'developer' }),
      ],
      ['may only read', () => setRole('owner', 'viewer')],
      ['may not invite any more', () => api.as('admin').put('/api/settings', { owners_may_invite: false })],
    ])('who %s', async (_case, end) => {
      expect((await end()).status).toBe(200)
      expect((await accept(sent())).status).toBe(404)
      expect((await api.as('admin').get(members())).body.data.map((one: any) => one.email)).not.toContain(
        'ada@example.com',
      )
    })
    it('but holds while they are one', async () => {
      expect((await accept(sent())).status).toBe(201)
    })
  })
})

describe('changing what people may do', () => {
  it('holds from the next request on and is told to open connections', async () => {
    const told: unknown[] = []
    api.services.identity.revocations.subscribe((revocation) => told.push(revocation))
    const answer = await api.as('admin').put(`/api/team/members/${id('developer')}`, { role: 'viewer' })
    expect(answer.body.data.role).toBe('viewer')
    expect(told).toContainEqual({ kind: 'user', user_id: id('developer') })
  })
  it('keeps the last administrator, also when two demote each other at once', async () => {
    const alone = await api.as('admin').put(`/api/team/members/${id('admin')}`, { role: 'member' })
    expect([alone.status, alone.body.error.code]).toEqual([409, 'CONFLICT'])
    expect((await api.as('admin').delete(`/api/team/members/${id('admin')}`)).status).toBe(409)
    expect(
      (await api.as('admin').put(`/api/team/members/${id('admin')}`, { status: 'disabled' })).status,
    ).toBe(409)
    await api.as('admin').put(`/api/team/members/${id('developer')}`, { role: 'admin' })
    const answers = await Promise.all([
      api.as('admin').put(`/api/team/members/${id('admin')}`, { role: 'member' }),
      api.as('admin').put(`/api/team/members/${id('developer')}`, { role: 'member' }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(
      api.kernel.db
        .sql(`SELECT count(*) FROM users WHERE role = 'admin' AND status = 'active'`)
        .pluck()
        .get(),
    ).toBe(1)
  })
  it('does not count a disabled administrator', async () => {
    await api.as('admin').put(`/api/team/members/${id('developer')}`, { role: 'admin', status: 'disabled' })
    expect((await api.as('admin').put(`/api/team/members/${id('admin')}`, { role: 'member' })).status).toBe(
      409,
    )
  })
  it('disables the last owner of a project at once, and whoever does it becomes owner there', async () => {
    const project = (await api.as('owner').post('/api/projects', { name: 'mine' })).body.data
    const answer = await api.as('admin').put(`/api/team/members/${id('owner')}`, { status: 'disabled' })
    expect([answer.status, answer.body.data.status]).toEqual([200, 'disabled'])
    const members = (await api.as('admin').get(`/api/projects/${project.id}/members`)).body.data
    expect(members).toEqual(
      expect.arrayContaining([expect.objectContaining({ user_id: id('admin'), role: 'owner' })]),
    )
    const trail = (await api.as('admin').get(`/api/projects/${project.id}/audit-logs`)).body.data
    expect(trail[0]).toMatchObject({ action: 'project.member_add', actor: { id: id('admin') } })
  })
  it('does not let an administrator leave a project without an owner by disabling themselves', async () => {
    await api.as('admin').put(`/api/team/members/${id('developer')}`, { role: 'admin' })
    await api.as('admin').post('/api/projects', { name: 'mine' })
    const answer = await api.as('admin').put(`/api/team/members/${id('admin')}`, { status: 'disabled' })
    expect([answer.status, answer.body.error.message]).toEqual([409, expect.stringContaining('mine')])
  })
  it('does not remove the last owner of a project', async () => {
    const project = (await api.as('owner').post('/api/projects', { name: 'mine' })).body.data
    const answer = await api.as('admin').delete(`/api/team/members/${id('owner')}`)
    expect([answer.status, answer.body.error.message]).toEqual([409, expect.stringContaining('mine')])
    await api
      .as('owner')
      .post(`/api/projects/${project.id}/members`, { user_id: id('developer'), role: 'owner' })
    expect((await api.as('admin').delete(`/api/team/members/${id('owner')}`)).body).toEqual({
      data: { id: id('owner'), deleted: true },
    })
    expect((await api.as('admin').get(`/api/team/members/${id('owner')}`)).status).toBe(404)
  })
  it('T22: takes no field that is not meant to be changed', async () => {
    const before = api.kernel.db.sql('SELECT * FROM users WHERE id = ?').get(id('developer'))
    for (const extra of [
      { id: 'usr_x' },
      { email: 'x@example.com' },
      { password_hash: 'x' },
      { created_at: 'x' },
      { is_admin: true },
      { totp_seed: null },
    ]) {
      expect(
        (await api.as('admin').put(`/api/team/members/${id('developer')}`, { status: 'active', ...extra }))
          .status,
      ).toBe(422)
    }
    expect(api.kernel.db.sql('SELECT * FROM users WHERE id = ?').get(id('developer'))).toEqual(before)
    for (const extra of [{ role: 'admin' }, { id: 'usr_x' }, { status: 'active' }])
      expect((await api.as('developer').put('/api/auth/me', { name: 'x', ...extra })).status).toBe(422)
  })
})

describe('projects', () => {
  it('belong to whoever creates them, and exist for their members only', async () => {
    const created = await api.as('developer').post('/api/projects', { name: 'shop', description: 'The shop' })
    expect([created.status, created.body.data.role, created.body.data.counts.member]).toEqual([
      201,
      'owner',
      1,
    ])
    const path = `/api/projects/${created.body.data.id}`
    expect((await api.as('viewer').get(path)).status).toBe(404)
    expect((await api.as('reader').post('/api/projects', { name: 'x' })).status).toBe(403)
    await api.as('developer').post(`${path}/members`, { email: api.actor('viewer').email, role: 'viewer' })
    expect(
      api.kernel.db
        .sql('SELECT role FROM project_members WHERE project_id = ? AND user_id = ?')
        .pluck()
        .get(created.body.data.id, id('viewer')),
    ).toBe('viewer')
    expect(api.events().map(({ type }) => type)).toEqual([
      'project.created',
      'project.member_add',
      'project.member_add',
    ])
  })
  it('keep their last owner, also when two remove each other at once', async () => {
    const project = (await api.as('admin').post('/api/projects', { name: 'shared' })).body.data
    const path = `/api/projects/${project.id}/members`
    await api.as('admin').post(path, { user_id: id('owner'), role: 'owner' })
    const answers = await Promise.all([
      api.as('admin').delete(`${path}/${id('owner')}`),
      api.as('admin').put(`${path}/${id('admin')}`, { role: 'viewer' }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  })
  it('may be deleted when they are empty, and never the default one', async () => {
    const project = (await api.as('admin').post('/api/projects', { name: 'empty' })).body.data
    const key = await api.as('admin').post('/api/ssh-keys/generate', { name: 'key', project_id: project.id })
    const full = await api.as('admin').delete(`/api/projects/${project.id}`)
    expect([full.status, full.body.error.message]).toEqual([409, expect.stringContaining('1 ssh key')])
    await api.as('admin').delete(`/api/ssh-keys/${key.body.data.id}`)
    expect((await api.as('admin').delete(`/api/projects/${project.id}`)).status).toBe(200)
    expect(
      (await api.as('admin').delete(`/api/projects/${api.services.http.default_project()}`)).status,
    ).toBe(409)
  })
  it('take no more apps than the administrator allows', async () => {
    const project_id = api.services.http.default_project()
    expect((await api.as('owner').put(`/api/projects/${project_id}`, { quotas: { apps: 99 } })).status).toBe(
      403,
    )
    expect(
      (await api.as('admin').put(`/api/projects/${project_id}`, { quotas: { apps: 1 } })).body.data.quotas,
    ).toEqual({ apps: 1 })
    api.fakes.git.commit('https://git.example.com/a/b.git', 'main', { 'index.html': 'x' })
    const create = (name: string) =>
      api.as('developer').post('/api/apps', { name, git_url: 'https://git.example.com/a/b.git' })
    expect((await create('one')).status).toBe(201)
    expect([(await create('two')).status, (await create('two')).body.error.message]).toEqual([
      409,
      expect.stringContaining('1 app at most'),
    ])
  })
})

describe('invitations by mail', () => {
  it.each(['on', 'fails'] as const)('with a mail server that is %s', async (mode) => {
    const mail: FakeMail = createFakeMail(mode)
    const withMail = await createTestApi({ jobs: false, mail })
    try {
      const { data } = (await withMail.as('admin').post('/api/team/members', { email: 'ada@example.com' }))
        .body
      expect([data.sent, data.link === null, data.token === null, mail.sent.length]).toEqual(
        mode === 'on' ? [true, true, true, 1] : [false, false, false, 0],
      )
      if (mode === 'on')
        expect(mail.sent[0]).toMatchObject({
          to: 'ada@example.com',
          // For whoever was never here: nothing of the API, and a time that people read.
          text: expect.stringMatching(
            /name and a password[^/]+http\S+\/invitation#inv_\w+\.[\w-]{43}\n[^/]+ until \d{4}-\d\d-\d\d \d\d:\d\d UTC/,
          ),
        })
    } finally {
      await withMail.close()
    }
  })
})
