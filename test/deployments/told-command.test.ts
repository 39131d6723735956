import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
const SECRET = 'a value of nobody else'
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'one')
  const made = await api
    .as('developer')
    .post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
  app_id = made.body.data.id
  await api.services.jobs.idle()
  await api.as('developer').post(`/api/apps/${app_id}/env`, { key: 'A_TOKEN', value: SECRET })
  api.fakes.engine.behave(() => true, { run: () => ({ exit_code: 0, lines: [] }) })
})
afterEach(() => api.close())

/** What a key that may only read finds of a command that was run. */
async function toldOf(command: string | string[]): Promise<unknown> {
  const answer = await api.as('developer').post(`/api/apps/${app_id}/exec`, { command })
  expect(answer.status, answer.text).toBeLessThan(300)
  const project_id = api.services.http.default_project()
  const trail = await api.as('read_key').get(`/api/projects/${project_id}/audit-logs?action=app.exec`)
  return trail.body.data[0].after.command
}

it.each([
  ['a secret of the app', `deliver '${SECRET}'`, "deliver '[redacted]'"],
  [
    'an address',
    'psql postgres://shop:s3cretpass@db.example.com/shop -c "SELECT 1"',
    'psql postgres://shop:[redacted]@db.example.com/shop -c "SELECT 1"',
  ],
  ['a variable', 'PGPASSWORD=s3cretpass psql -h db', 'PGPASSWORD=[redacted] psql -h db'],
  ['an option', 'mysql --user=shop --password=s3cretpass', 'mysql --user=shop --password=[redacted]'],
  [
    'a header',
    'curl -H "Authorization: Bearer s3cretpass" https://example.com',
    'curl -H "Authorization: Bearer [redacted]" https://example.com',
  ],
])('the audit trail tells a command without %s', async (_what, command, told) => {
  expect(await toldOf(command)).toBe(told)
})

it('nor one in a list of arguments', async () => {
  const command = ['tool', SECRET, '--token=s3cretpass', 'redis://:s3cretpass@cache']
  expect(await toldOf(command)).toEqual([
    'tool',
    '[redacted]',
    '--token=[redacted]',
    'redis://:[redacted]@cache',
  ])
})
