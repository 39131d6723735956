import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

/** Attacks on the rights and limits of the built product; the same ones are walked in full on its services. */
let portreeve: Portreeve
let project_id: string
let app_id: string
/** Keys of the administrator: one for everything, one that is limited to a project. */
const keys = { full: '', project: '' }
beforeAll(async () => {
  portreeve = await startPortreeve()
  project_id = (await portreeve.call('GET', '/api/projects')).body.data[0].id
  const make = async (project_ids?: string[]) => {
    const made = await portreeve.call('POST', '/api/auth/api-keys', { name: 'key', project_ids })
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    return made.body.data.key as string
  }
  app_id = (await portreeve.call('POST', '/api/apps', { name: 'shop', source: 'upload' })).body.data.id
  keys.full = await make()
  keys.project = await make([project_id])
})
afterAll(() => portreeve?.dispose())

/** A call with a key in place of the session. */
async function by(
  key: keyof typeof keys,
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
) {
  const response = await fetch(`${portreeve.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-api-key': keys[key], ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}
const code = ({ status, body }: { status: number; body: any }) => [status, body.error?.code]

describe("an administrator's key that is limited to a project", () => {
  it('sets no quotas and ends no cool-down', async () => {
    const quotas = { quotas: { apps: 1 } }
    expect(code(await by('project', 'PUT', `/api/projects/${project_id}`, quotas))).toEqual([
      403,
      'FORBIDDEN',
    ])
    const domain = { app_id, hostname: 'shop.example.com', end_cool_down: true }
    expect(code(await by('project', 'POST', '/api/domains', domain))).toEqual([403, 'FORBIDDEN'])
  })
  it('is answered nothing that another credential of its user has asked for', async () => {
    const again = { 'idempotency-key': 'the-same' }
    const first = await by('full', 'POST', '/api/projects', { name: 'Third' }, again)
    const replay = await by('project', 'POST', '/api/projects', { name: 'Third' }, again)
    expect([first.status, ...code(replay)]).toEqual([201, 403, 'FORBIDDEN'])
    expect(replay.headers.get('idempotency-replayed')).toBe(null)
  })
})

it('a secret that is shown once is not shown again under the same idempotency key', async () => {
  const again = { 'idempotency-key': 'once' }
  const first = await portreeve.call('POST', '/api/auth/api-keys', { name: 'once' }, again)
  const second = await portreeve.call('POST', '/api/auth/api-keys', { name: 'once' }, again)
  expect([first.status, second.status]).toEqual([201, 409])
  expect(JSON.stringify(second.body)).not.toContain(first.body.data.key)
})

it('memory that a project may not use is given to no database, and to nothing of a template', async () => {
  const limited = await portreeve.call('PUT', `/api/projects/${project_id}`, { quotas: { memory_bytes: 0 } })
  expect(limited.status).toBe(200)
  const answers = [
    await portreeve.call('POST', '/api/databases', { name: 'cache', engine: 'redis' }),
    await portreeve.call('POST', '/api/templates/ghost/deploy', { name: 'blog' }),
  ]
  expect(answers.map(code)).toEqual(answers.map(() => [409, 'CONFLICT']))
  await portreeve.call('PUT', `/api/projects/${project_id}`, { quotas: {} })
})

describe('a text that no engine or reader would take is told at once', () => {
  it.each([
    [
      'an image of more than 255 characters',
      '/api/apps',
      { name: 'long', image: `a.example/${'a'.repeat(250)}` },
      422,
    ],
    ['a key that is given twice', '/api/projects', '{"name":"One","name":"Two"}', 400],
  ])('%s', async (_, path, body, status) => {
    const answer = await portreeve.call('POST', path, body)
    expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  })
  it('a name that every object answers to is a name like any other', async () => {
    const answer = await portreeve.call('POST', '/api/domains', { app_id, hostname: 'shop.constructor' })
    expect([answer.status, answer.body.data?.hostname]).toEqual([201, 'shop.constructor'])
  })
  it('a body in another character set than UTF-8', async () => {
    const headers = { 'content-type': 'application/json; charset=utf-16' }
    const answer = await portreeve.call('POST', '/api/projects', '{"name":"Shop"}', headers)
    expect(code(answer)).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })
  it('a base directory that is not in the source', async () => {
    const app = { name: 'based', source: 'upload', base_directory: 'web', soak_seconds: 0 }
    const { id } = (await portreeve.call('POST', '/api/apps', app)).body.data
    const tar = pack()
    tar.entry({ name: 'index.html' }, '<p>hello')
    tar.finalize()
    const sent = await portreeve.call(
      'POST',
      `/api/apps/${id}/upload`,
      new Uint8Array(gzipSync(await buffer(tar))),
      {
        'content-type': 'application/gzip',
      },
    )
    const ended = await eventually('The deployment ending', async () => {
      const { data } = (await portreeve.call('GET', `/api/deployments/${sent.body.data.id}`)).body
      return data.finished_at ? data : undefined
    })
    expect(ended.status).toBe('failed')
    expect(ended.error.message).toContain('The base directory web is not in the source.')
  })
})
