import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'
const EXAMPLE = `# ---------------------------
# Where the shop keeps its orders.
#
# One line for each part of it.
DATABASE_URL=postgres://localhost/shop
#SENTRY_DSN=
STRIPE_KEY="sk_test_..." # of the test account
this is no assignment

# What mails are sent from
MAIL_FROM='Shop <shop@example.com>'
PORT=
`
const SHOP = {
  'package.json': '{"scripts":{"start":"node server.js"}}',
  'server.js': "require('node:http').createServer().listen(3000)",
}
const SUGGESTED = [
  {
    key: 'DATABASE_URL',
    value: 'postgres://localhost/shop',
    comment: 'Where the shop keeps its orders. One line for each part of it.',
  },
  { key: 'STRIPE_KEY', value: 'sk_test_...', comment: null },
  { key: 'MAIL_FROM', value: 'Shop <shop@example.com>', comment: 'What mails are sent from' },
  { key: 'PORT', value: '', comment: null },
]

describe("the repository's example of a .env file", () => {
  let api: TestApi
  const developer = () => api.as('developer')
  beforeEach(async () => {
    api = await createTestApi()
  })
  afterEach(() => api.close())
  const detect = async (files: Record<string, string>, more: Record<string, unknown> = {}) => {
    api.fakes.git.commit(URL, 'main', { ...SHOP, ...files }, 'A commit')
    const answer = await developer().post('/api/apps/detect', { git_url: URL, ...more })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return answer.body.data
  }

  it('is told with its values and remarks by a detection and by a deployment', async () => {
    expect((await detect({ '.env.example': EXAMPLE })).suggested_variables).toEqual(SUGGESTED)
    const app = (await developer().post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0 })).body
      .data
    await api.services.jobs.idle()
    const [{ id }] = (await developer().get(`/api/apps/${app.id}/deployments`)).body.data
    const { plan } = (await developer().get(`/api/deployments/${id}`)).body.data
    expect(plan.suggested_variables).toEqual(SUGGESTED)
    expect((await developer().get(`/api/apps/${app.id}/env`)).body.total).toBe(0)
  })
  it('is told also to whoever sends the body that they will make the app with', async () => {
    const body = { name: 'shop', branch: null, port: null, replicas: 2, soak_seconds: 0, auto_deploy: false }
    expect((await detect({ '.env.example': EXAMPLE }, body)).suggested_variables).toEqual(SUGGESTED)
  })
  it('is looked for in the folder of the app, beside a Dockerfile too', async () => {
    const files = {
      'web/.env.sample': 'A=1',
      'web/Dockerfile': 'FROM scratch\nCMD ["/app"]',
      '.env.example': 'B=2',
    }
    const plan = await detect(files, { base_directory: 'web' })
    expect(plan).toMatchObject({
      stack: 'dockerfile',
      suggested_variables: [{ key: 'A', value: '1', comment: null }],
    })
  })
  it('is told of at most 200 variables, none of them of any length', async () => {
    const many = Array.from({ length: 300 }, (_, at) => `KEY_${at}=${at === 0 ? 'x'.repeat(1001) : at}`)
    const { suggested_variables } = await detect({ '.env.example': many.join('\n') })
    expect(suggested_variables).toHaveLength(200)
    expect(suggested_variables[0].key).toBe('KEY_1')
    const long = `A=1\n${'# nobody reads so much\n'.repeat(3000)}`
    expect(await detect({ '.env.example': long })).not.toHaveProperty('suggested_variables')
  })
  it('is read at once however wide the gaps in a remark are', async () => {
    const text = `#x${' '.repeat(63_000)}y\nA=1\n`
    const { suggested_variables } = await detect({ '.env.example': text })
    expect(suggested_variables).toEqual([{ key: 'A', value: '1', comment: `x${' '.repeat(299)}` }])
  })
  it('is nothing where there is none', async () => {
    expect(await detect({ '.env': 'A=1' })).not.toHaveProperty('suggested_variables')
  })
})
