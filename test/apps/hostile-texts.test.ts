import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sourceFolder } from '#server/platform/archive/source-folder'
import { createTestApi, type TestApi } from '#test/support/api'

/** Texts that every JavaScript object answers to. */
const INHERITED = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__']

let api: TestApi
let app_id: string
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  app_id = (await api.as('admin').post('/api/apps', { name: 'shop', source: 'upload' })).body.data.id
})
afterAll(() => api.close())

describe('T32: texts that every object answers to are texts like any other', () => {
  it.each(INHERITED)('%s in the fields and paths of the API', async (text) => {
    const admin = api.as('admin')
    const name = text.toLowerCase().replaceAll('_', '')
    const answers = await Promise.all([
      admin.post('/api/domains', { app_id, hostname: `shop.${text}` }),
      admin.post('/api/domains', { app_id, hostname: `${text}.example.com` }),
      admin.post('/api/apps', { name, image: `${text}/${text}:${text}` }),
      admin.post('/api/apps', { name: `${name}2`, git_url: `https://${text}/${text}.git`, branch: text }),
      admin.post('/api/apps', { name: `${name}3`, source: text }),
      admin.post('/api/registries', { name: text, host: text, username: text, password: text }),
      admin.post('/api/git-credentials', { name: text, host: text, token: 'a long token' }),
      admin.post('/api/projects', { name: text }),
      admin.post('/api/auth/login', { email: `${text}@example.test`, password: text }),
      admin.get(`/api/apps/${text}`),
      admin.get(`/api/${text}`),
      admin.get(`/api/apps?status=${text}&${text}=1`),
      admin.get(`/api/search?q=${text}`),
      admin.get(`/api/apps/${app_id}/events?type=${text}`),
      admin.put(`/api/apps/${app_id}`, { [text === '__proto__' ? 'constructor' : text]: 1 }),
      admin.put('/api/settings', { server: { [text === '__proto__' ? 'valueOf' : text]: 1 } }),
    ])
    expect(answers.map(({ status, text: body }) => (status >= 500 ? body : 'answered'))).toEqual(
      answers.map(() => 'answered'),
    )
    expect(answers[0]!.status).toBeLessThan(500)
  })
})

describe('what the engine would refuse only later', () => {
  it('the name of an image has at most 255 characters', async () => {
    const { status, body } = await api
      .as('admin')
      .post('/api/apps', { name: 'long', image: `registry.example.com/${'a'.repeat(240)}:1` })
    expect([status, body.error.details[0].path]).toEqual([422, 'image'])
    const fits = `registry.example.com/${'a'.repeat(200)}:${'t'.repeat(128)}`
    expect((await api.as('admin').post('/api/apps', { name: 'fits', image: fits })).status).toBe(201)
  })
  it('a body in another character set than UTF-8 is refused', async () => {
    const answer = await api.request('POST', '/api/projects', {
      as: 'admin',
      raw: JSON.stringify({ name: 'Shop' }),
      headers: { 'content-type': 'application/json; charset=utf-16' },
    })
    expect([answer.status, answer.body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })
})

describe('the base directory of an app', () => {
  let root: string
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'source-'))
    mkdirSync(join(root, 'source/apps/web'), { recursive: true })
    writeFileSync(join(root, 'source/file'), '')
    symlinkSync('apps/web', join(root, 'source/inside'))
    symlinkSync('/etc', join(root, 'source/etc'))
    symlinkSync('..', join(root, 'source/up'))
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  it('is a folder of its source', () => {
    const source = join(root, 'source')
    expect(['.', 'apps/web', 'inside'].map((name) => sourceFolder(source, name))).toEqual([
      source,
      join(source, 'apps/web'),
      join(source, 'apps/web'),
    ])
  })
  it.each([
    ['nothing', 'is not in the source.'],
    ['file', 'is not a folder.'],
    ['etc', 'leads out of the source.'],
    ['up', 'leads out of the source.'],
    ['../..', 'leads out of the source.'],
  ])('says what is wrong with %s', (name, reason) => {
    expect(() => sourceFolder(join(root, 'source'), name)).toThrow(`The base directory ${name} ${reason}`)
  })
  it('that is not there is told by the dry run of detection', async () => {
    const git_url = 'https://git.example.com/team/base.git'
    api.fakes.git.commit(git_url, 'main', { 'index.html': '<p>hello' })
    const { status, body } = await api
      .as('admin')
      .post('/api/apps/detect', { git_url, base_directory: 'web' })
    expect([status, body.error.message]).toEqual([
      422,
      expect.stringMatching(/^base_directory: The base directory web is not in the source\. Change/),
    ])
  })
})
