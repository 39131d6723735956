import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const SSH_URL = 'git@git.example.com:team/vault.git'
const HTTPS_URL = 'https://git.example.com/team/ledger.git'
const FILES = { 'index.html': '<p>hello' }
let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(async () => {
  await api.services.deployments.reconciler.stop()
  await api.close()
})

const post = async (path: string, body: unknown) => (await api.as('developer').post(path, body)).body.data
const key = (name: string) => post('/api/ssh-keys/generate', { name })
const token = (name: string, more = {}) =>
  post('/api/git-credentials', { name, host: 'git.example.com', token: `the token named ${name}`, ...more })
/** The private repository of one deploy key or token. */
async function privateTo(url: string, id: string) {
  api.fakes.git.commit(url, 'main', FILES)
  api.fakes.git.protect(
    url,
    id.startsWith('ssh_')
      ? { kind: 'ssh', private_key: api.services.ssh_keys.privateKey(id) }
      : { kind: 'token', token: `the token named first` },
  )
}
const create = (body: object) => api.as('developer').post('/api/apps', { soak_seconds: 0, ...body })
const latest = async (id: string) =>
  (await api.as('developer').get(`/api/apps/${id}`)).body.data.latest_deployment.status

describe('the SSH key of an app', () => {
  it('is the one that its repository is read with, though the project has a newer one for the host', async () => {
    const [first] = [await key('first'), await key('second')]
    await privateTo(SSH_URL, first.id)
    const made = await create({ name: 'vault', git_url: SSH_URL, ssh_key_id: first.id })
    expect([made.status, made.body.data.ssh_key_id]).toEqual([201, first.id])
    await api.services.jobs.idle()
    expect(await latest(made.body.data.id)).toBe('live')
    const without = await create({ name: 'other', git_url: SSH_URL })
    expect([without.status, without.body.data.ssh_key_id]).toEqual([201, null])
    await api.services.jobs.idle()
    expect(await latest(without.body.data.id)).toBe('failed')
  })
  it('is tried when it is set: a key that the host refuses changes nothing', async () => {
    const [first, second] = [await key('first'), await key('second')]
    await privateTo(SSH_URL, first.id)
    const refused = await create({ name: 'vault', git_url: SSH_URL, ssh_key_id: second.id })
    expect([refused.status, refused.body.error.details[0].path]).toEqual([422, 'ssh_key_id'])
    expect((await api.as('developer').get('/api/apps')).body.total).toBe(0)
    const made = await create({ name: 'vault', git_url: SSH_URL, ssh_key_id: first.id })
    const path = `/api/apps/${made.body.data.id}`
    expect((await api.as('developer').put(path, { ssh_key_id: second.id })).status).toBe(422)
    expect((await api.as('developer').get(path)).body.data.ssh_key_id).toBe(first.id)
    const freed = await api.as('developer').put(path, { ssh_key_id: null })
    expect([freed.status, freed.body.data.ssh_key_id]).toEqual([200, null])
  })
  it.each(['ssh_key_id', 'git_credential_id'])(
    'is none without a name: an empty %s is refused',
    async (field) => {
      api.fakes.git.commit(HTTPS_URL, 'main', FILES)
      const refused = await create({ name: 'ledger', git_url: HTTPS_URL, [field]: '' })
      expect([refused.status, refused.body.error.details?.[0].path]).toEqual([422, field])
      const made = await create({ name: 'ledger', git_url: HTTPS_URL })
      const path = `/api/apps/${made.body.data.id}`
      expect((await api.as('developer').put(path, { [field]: '' })).status).toBe(422)
    },
  )
  it('is asked for again when the repository changes', async () => {
    const first = await key('first')
    await privateTo(SSH_URL, first.id)
    const made = await create({ name: 'vault', git_url: SSH_URL, ssh_key_id: first.id })
    const elsewhere = 'git@git.example.com:team/other.git'
    api.fakes.git.commit(elsewhere, 'main', FILES)
    api.fakes.git.protect(elsewhere, { kind: 'ssh', private_key: 'of somebody else' })
    const moved = await api.as('developer').put(`/api/apps/${made.body.data.id}`, { git_url: elsewhere })
    expect([moved.status, moved.body.error.details[0].path]).toEqual([422, 'ssh_key_id'])
  })
  it('is not deleted while an app names it', async () => {
    const [first, second] = [await key('first'), await key('second')]
    await privateTo(SSH_URL, first.id)
    await create({ name: 'vault', git_url: SSH_URL, ssh_key_id: first.id })
    const kept = await api.as('developer').delete(`/api/ssh-keys/${first.id}`)
    expect([kept.status, kept.body.error.message]).toEqual([409, expect.stringContaining('vault')])
    expect((await api.as('developer').delete(`/api/ssh-keys/${second.id}`)).status).toBe(200)
  })
  it('is of the project of the app: another one is as unknown as none, and a move asks for it to be let go', async () => {
    const elsewhere = (await api.as('admin').post('/api/projects', { name: 'Elsewhere' })).body.data.id
    const foreign = (
      await api.as('admin').post('/api/ssh-keys/generate', { name: 'foreign', project_id: elsewhere })
    ).body.data.id
    const refusal = (ssh_key_id: string) =>
      create({ name: 'vault', git_url: SSH_URL, ssh_key_id }).then(({ status, body }) => [status, body.error])
    expect(await refusal(foreign)).toEqual(await refusal('ssh_0000000000000000000000'))
    expect((await refusal(foreign))[0]).toBe(422)
    const own = await key('own')
    await privateTo(SSH_URL, own.id)
    const app = (await create({ name: 'vault', git_url: SSH_URL, ssh_key_id: own.id })).body.data
    await api.services.jobs.idle()
    const path = `/api/apps/${app.id}`
    const move = () => api.as('admin').post(`${path}/move`, { project_id: elsewhere })
    const held = await move()
    expect([held.status, held.body.error.message]).toEqual([409, expect.stringContaining('ssh_key_id')])
    await api.as('developer').put(path, { ssh_key_id: null })
    expect((await move()).status).toBe(200)
  })
  it.each([
    ['ssh_key_id', { git_url: HTTPS_URL }, 'git_credential_id'],
    ['git_credential_id', { git_url: SSH_URL }, 'ssh_key_id'],
    ['ssh_key_id', { image: 'nginx:1.29' }, 'image'],
    ['git_credential_id', { image: 'nginx:1.29' }, 'image'],
  ])('%s is refused where it would not be used (%j)', async (field, source, named) => {
    const id = field === 'ssh_key_id' ? (await key('first')).id : (await token('first')).id
    const { status, body } = await create({ name: 'vault', ...source, [field]: id })
    expect([status, body.error?.details?.[0].path]).toEqual([422, field])
    expect(body.error.message).toContain(named)
  })
})

describe('the token of an app', () => {
  it('is the one that its repository is read with; a project has as many for a host as it likes', async () => {
    const [first, second] = [await token('first'), await token('second')]
    await privateTo(HTTPS_URL, first.id)
    const asked = { name: 'ledger', git_url: HTTPS_URL }
    const refused = await create({ ...asked, git_credential_id: second.id })
    expect([refused.status, refused.body.error.details[0].path]).toEqual([422, 'git_credential_id'])
    const made = await create({ ...asked, git_credential_id: first.id })
    expect([made.status, made.body.data.git_credential_id]).toEqual([201, first.id])
    await api.services.jobs.idle()
    expect(await latest(made.body.data.id)).toBe('live')
    expect((await api.as('developer').delete(`/api/git-credentials/${first.id}`)).status).toBe(409)
  })
  it('is told to its own host only', async () => {
    const other = await token('first', { host: 'other.example.com' })
    api.fakes.git.commit(HTTPS_URL, 'main', FILES)
    const { status, body } = await create({
      name: 'ledger',
      git_url: HTTPS_URL,
      git_credential_id: other.id,
    })
    expect([status, body.error.message]).toEqual([422, expect.stringContaining('other.example.com')])
    expect(api.fakes.git.calls).toEqual([])
  })
  it('without one the newest for the host is used', async () => {
    await token('older')
    const newest = await token('first')
    await privateTo(HTTPS_URL, newest.id)
    const made = await create({ name: 'ledger', git_url: HTTPS_URL })
    await api.services.jobs.idle()
    expect(await latest(made.body.data.id)).toBe('live')
  })
})

describe('a key or token that is removed while the forge is asked', () => {
  it('is told of, and no app is made', async () => {
    api.fakes.git.commit(HTTPS_URL, 'main', FILES)
    const { id } = await token('first')
    const asked = Promise.withResolvers<void>()
    const answered = Promise.withResolvers<void>()
    const { resolve } = api.fakes.git
    api.fakes.git.resolve = async (...question) => {
      asked.resolve()
      await answered.promise
      return resolve(...question)
    }
    const made = create({ name: 'ledger', git_url: HTTPS_URL, git_credential_id: id })
    await asked.promise
    expect((await api.as('developer').delete(`/api/git-credentials/${id}`)).status).toBe(200)
    answered.resolve()
    const { status, body } = await made
    expect([status, body.error.message]).toEqual([
      409,
      'Something that this call names was removed in the meantime. Look again, then repeat it.',
    ])
    expect((await api.as('developer').get('/api/apps')).body.total).toBe(0)
  })
})

describe('a dry run', () => {
  it('reads with the key that is named', async () => {
    const [first] = [await key('first'), await key('second')]
    await privateTo(SSH_URL, first.id)
    const detect = (more: object) =>
      api.as('developer').post('/api/apps/detect', { git_url: SSH_URL, ...more })
    expect((await detect({})).status).toBe(422)
    expect((await detect({ ssh_key_id: first.id })).status).toBe(200)
  })
})
