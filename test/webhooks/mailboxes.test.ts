import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFakeMail, type FakeMail } from '#server/platform/mail/fake'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
let mail: FakeMail
beforeEach(async () => {
  mail = createFakeMail('on')
  api = await createTestApi({ jobs: false, mail })
  api.services.webhooks.start()
})
afterEach(async () => {
  await api.services.webhooks.stop()
  await api.close()
})

const MEMBER = 'viewer@example.test'
const add = (to: string, body: object = {}, as: 'developer' | 'admin' = 'developer') =>
  api.as(as).post('/api/webhooks', { kind: 'notification', provider: 'email', config: { to }, ...body })
const test = (id: string) => api.as('developer').post(`/api/webhooks/${id}/test`)

describe('mail of a notification', () => {
  it('goes to members of the project, and elsewhere only where an administrator says so', async () => {
    const strangers = ['victim@bank.example', 'outsider@example.test']
    for (const to of strangers) {
      const { status, body } = await add(to)
      expect([status, body.error?.details[0].path]).toEqual([422, 'config.to'])
    }
    const own = await add('Viewer@Example.test')
    const theirs = await add(strangers[0]!, {}, 'admin')
    expect([own.status, (await add('developer@example.test')).status, theirs.status]).toEqual([201, 201, 201])
    const change = (id: string, body: object) => api.as('developer').put(`/api/webhooks/${id}`, body)
    expect((await change(own.body.data.id, { config: { to: strangers[0] } })).status).toBe(422)
    expect((await change(theirs.body.data.id, { name: 'Ops', config: { to: strangers[0] } })).status).toBe(
      200,
    )
  })
  it('has no text of a user in the subject of a test, and no hidden character', async () => {
    const name = 'your mailbox. Confirm it at https://evil.example/login'
    const { id } = (await add(MEMBER, { name })).body.data
    expect((await test(id)).body.data.succeeded).toBe(true)
    expect(mail.sent).toMatchObject([
      { to: MEMBER, subject: 'A test message of Portreeve', text: expect.stringContaining(`"${name}"`) },
    ])
  })
  it('is tested ten times an hour by one user, however many calls come at once', async () => {
    const { id } = (await add(MEMBER)).body.data
    const answers = await Promise.all(Array.from({ length: 30 }, () => test(id)))
    expect(Map.groupBy(answers, ({ status }) => status).get(429)).toHaveLength(20)
    expect(mail.sent).toHaveLength(10)
    expect((await api.as('owner').post(`/api/webhooks/${id}/test`)).status).toBe(200)
    api.fakes.clock.advance(3_600_000)
    expect((await test(id)).status).toBe(200)
  })
  it('is 60 messages an hour of one project to one address; the rest stands in the list of deliveries', async () => {
    const { id } = (await add(MEMBER, { events: ['app.crashed'] })).body.data
    const project_id = api.services.http.default_project()
    const crash = async () => {
      api.services.events.append({ type: 'app.crashed', project_id, payload: {} })
      await api.services.webhooks.sender.idle()
    }
    for (let n = 0; n < 63; n++) await crash()
    expect(mail.sent).toHaveLength(60)
    const { body } = await api.as('developer').get(`/api/webhooks/${id}/deliveries?status=ignored`)
    expect([body.total, body.data[0].detail]).toEqual([3, expect.stringContaining('within an hour')])
    api.fakes.clock.advance(3_600_000)
    await crash()
    expect(mail.sent).toHaveLength(61)
  })
  it('is 180 messages an hour to one address of all webhooks that one user made, in however many projects', async () => {
    const projects = await Promise.all(
      [1, 2, 3, 4, 5].map(async (at) => {
        const made = await api.as('owner').post('/api/projects', { name: `of mine ${at}` })
        const project_id = made.body.data.id as string
        await api.as('owner').post(`/api/projects/${project_id}/members`, { email: MEMBER, role: 'viewer' })
        const hook = {
          kind: 'notification',
          provider: 'email',
          config: { to: MEMBER },
          events: ['app.crashed'],
        }
        expect((await api.as('owner').post('/api/webhooks', { ...hook, project_id })).status).toBe(201)
        return project_id
      }),
    )
    for (const project_id of projects)
      for (let n = 0; n < 50; n += 1) {
        api.services.events.append({ type: 'app.crashed', project_id, payload: {} })
        await api.services.webhooks.sender.idle()
      }
    expect(mail.sent).toHaveLength(180)
  })
})
