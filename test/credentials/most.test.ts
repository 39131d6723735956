import { expect, it } from 'vitest'
import { createTestApi } from '#test/support/api'

it.each([
  [
    'git-credentials',
    (n: number) => ({ name: `token ${n}`, host: 'git.example.com', token: `token-number-${n}` }),
  ],
  ['ssh-keys/generate', (n: number) => ({ name: `key ${n}` })],
] as const)('a project has 500 %s at most, so that each log is searched for few', async (path, body) => {
  const api = await createTestApi()
  try {
    const add = (n: number) => api.as('owner').post(`/api/${path}`, body(n))
    for (let n = 0; n < 500; n += 1) expect((await add(n)).status).toBe(201)
    const refused = await add(500)
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringMatching(/^A project can have 500 .* at most\. Remove some/),
    ])
    const project = await api.as('owner').post('/api/projects', { name: 'another' })
    const elsewhere = { ...body(501), project_id: project.body.data.id }
    expect((await api.as('owner').post(`/api/${path}`, elsewhere)).status).toBe(201)
  } finally {
    await api.close()
  }
})
