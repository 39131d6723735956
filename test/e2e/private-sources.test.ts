import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { docker, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { startSshGitServer, type SshGitServer } from '#test/support/ssh-git-server'
import { betrayed, filesBelow, processList } from '#test/support/traces'

const TOKEN = 'glpat-canary-5d1fb7a2c94e'
let portreeve: Portreeve
let shell: SshGitServer
let forge: GitServer
beforeAll(async () => {
  ;[shell, forge] = await Promise.all([startSshGitServer(), startGitServer({ tls: true })])
  portreeve = await startPortreeve({
    env: {
      PORTREEVE_ALLOWED_PRIVATE_HOSTS: `${shell.host},${forge.host}`,
      SSL_CERT_FILE: forge.ca_file!,
    },
  })
})
afterAll(async () => {
  await portreeve?.dispose()
  await Promise.all([shell?.close(), forge?.close()])
})

async function created<T = any>(path: string, body: unknown): Promise<T> {
  const answer = await portreeve.call('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data
}
/** A deployment, to its end. */
const deploy = async (app_id: string) =>
  portreeve.untilDeployment((await created(`/api/apps/${app_id}/deploy`, {})).id)
/** An app whose first deployment has ended, and that deployment. */
async function firstDeployment(name: string, git_url: string) {
  const app = await created('/api/apps', { name, git_url, soak_seconds: 1 })
  const { body } = await portreeve.call('GET', `/api/apps/${app.id}/deployments`)
  return { app, deployment: await portreeve.untilDeployment(body.data[0].id) }
}

/** Everything that is kept or shown of an app besides the sealed secret itself. */
async function placesOf(app_id: string): Promise<Record<string, string>> {
  const {
    body: { data: deployments },
  } = await portreeve.call('GET', `/api/apps/${app_id}/deployments?per_page=100`)
  const answers = await Promise.all(
    [
      '/api/ssh-keys',
      '/api/git-credentials',
      '/api/audit-logs?per_page=100',
      `/api/apps/${app_id}`,
      `/api/apps/${app_id}/deployments`,
      `/api/apps/${app_id}/logs`,
      ...deployments.flatMap(({ id }: { id: string }) => [
        `/api/deployments/${id}`,
        `/api/deployments/${id}/logs?tail=5000`,
      ]),
    ].map(async (path) => [`GET ${path}`, JSON.stringify((await portreeve.call('GET', path)).body)] as const),
  )
  const containers = docker('ps', '-aq', '--filter', `label=portreeve.app=${app_id}`)
    .split('\n')
    .filter(Boolean)
  const images = docker('images', '-q', '--filter', `label=portreeve.app=${app_id}`)
    .split('\n')
    .filter(Boolean)
  expect([containers.length, images.length].every((count) => count > 0)).toBe(true)
  return {
    ...Object.fromEntries(answers),
    'the log of the server': portreeve.output(),
    'docker inspect': docker('inspect', ...containers, ...images),
    'docker history': images.map((id) => docker('history', '--no-trunc', id)).join('\n'),
    ...filesBelow(portreeve.data_directory, ['keys/']),
  }
}

describe('a private repository over SSH', () => {
  let app_id: string
  it('without a key, and with a key that the host does not know, fails with a sentence that says so', async () => {
    shell.git.repository('team/vault').commit(nodeApp('vault'))
    const { app, deployment } = await firstDeployment('vault', shell.url('team/vault'))
    app_id = app.id
    expect(deployment).toMatchObject({
      status: 'failed',
      error: {
        step: 'clone',
        code: 'git_authentication',
        message: expect.stringContaining('is private or does not exist'),
      },
    })
    const stranger = await created('/api/ssh-keys', {
      name: 'stranger',
      private_key: shell.stranger_key,
    })
    expect(await deploy(app_id)).toMatchObject({
      status: 'failed',
      error: {
        step: 'clone',
        code: 'git_authentication',
        message: expect.stringContaining('refused the credential'),
      },
    })
    expect((await portreeve.call('DELETE', `/api/ssh-keys/${stranger.id}`)).status).toBe(409)
  })
  it('goes live with a key that was generated here and added to the host', async () => {
    const key = await created('/api/ssh-keys/generate', { name: 'deploy key' })
    shell.authorize(key.public_key)
    expect(await deploy(app_id)).toMatchObject({ status: 'live', error: null })
    expect((await portreeve.visit('vault.apps.test')).body).toBe('vault')
    const { body } = await portreeve.call('GET', '/api/ssh-keys')
    expect(body.data.find(({ id }: { id: string }) => id === key.id)).toMatchObject({
      has_private_key: true,
      last_used_at: expect.any(String),
    })
  })
  it('is refused once the host has another key than at the first contact, and the app serves on', async () => {
    await shell.changeHostKey()
    const refused = await deploy(app_id)
    expect(refused).toMatchObject({
      status: 'failed',
      error: {
        step: 'clone',
        code: 'git_host_key',
        message: expect.stringMatching(/^The SSH host key of .+ is not the one that is known\.$/),
        hint: expect.stringContaining('known_hosts'),
      },
    })
    expect((await portreeve.visit('vault.apps.test')).body).toBe('vault')
  })
  it('goes live again with an imported key that comes with the new key of the host', async () => {
    await created('/api/ssh-keys', {
      name: 'imported',
      private_key: shell.deploy_key,
      known_hosts: shell.known_hosts,
    })
    shell.git.repository('team/vault').commit(nodeApp('vault two'))
    expect(await deploy(app_id)).toMatchObject({ status: 'live', error: null })
    expect((await portreeve.visit('vault.apps.test')).body).toBe('vault two')
  })
  it('leaves no trace of the key: in no command line or environment while git runs, no log, answer, image, container or file', async () => {
    const seen = shell.processes()
    expect(seen).toMatch(/\bssh\b.*git-upload-pack/)
    expect(
      betrayed(
        { 'the deploy key': shell.deploy_key, "the stranger's key": shell.stranger_key },
        { 'the process list': seen, ...(await placesOf(app_id)) },
      ),
    ).toEqual([])
  })
})

describe('a private repository over HTTPS', () => {
  /** What ran on this machine at each request that git made. */
  const seen: string[] = []
  const url = () =>
    forge.repository('team/ledger', { credential: { username: 'deployer', password: TOKEN } }).url
  let app_id: string
  it('without a token, and with a wrong one, fails with a sentence that says so', async () => {
    forge.repository('team/ledger').commit(nodeApp('ledger'))
    forge.intercept = () => {
      seen.push(processList())
      return false
    }
    const { app, deployment } = await firstDeployment('ledger', url())
    app_id = app.id
    expect(deployment).toMatchObject({
      status: 'failed',
      error: {
        step: 'clone',
        code: 'git_authentication',
        message: expect.stringContaining('is private or does not exist'),
      },
    })
    const wrong = await created('/api/git-credentials', {
      name: 'old',
      host: forge.host,
      username: 'deployer',
      token: 'glpat-canary-expired-token',
    })
    expect(await deploy(app_id)).toMatchObject({
      status: 'failed',
      error: {
        step: 'clone',
        code: 'git_authentication',
        message: expect.stringContaining('refused the credential'),
      },
    })
    expect((await portreeve.call('DELETE', `/api/git-credentials/${wrong.id}`)).status).toBe(200)
  })
  it('goes live with a stored token, which the host of the token alone is told', async () => {
    const credential = await created('/api/git-credentials', {
      name: 'forge',
      host: forge.host,
      username: 'deployer',
      token: TOKEN,
    })
    expect(credential).toMatchObject({ masked: `…${TOKEN.slice(-4)}`, last_used_at: null })
    expect(await deploy(app_id)).toMatchObject({ status: 'live', error: null })
    expect((await portreeve.visit('ledger.apps.test')).body).toBe('ledger')
    const { body } = await portreeve.call('GET', '/api/git-credentials')
    expect(body.data).toMatchObject([{ id: credential.id, last_used_at: expect.any(String) }])
  })
  it('is read with the token that the app names, where each repository of a host has a token of its own', async () => {
    const own = (name: string) => `glpat-canary-only-for-${name}-71c0`
    const [left, right] = await Promise.all(
      ['left', 'right'].map(async (name) => {
        const repository = forge.repository(`team/${name}`, {
          credential: { username: 'deployer', password: own(name) },
        })
        repository.commit(nodeApp(name))
        const { id } = await created('/api/git-credentials', {
          name,
          host: forge.host,
          username: 'deployer',
          token: own(name),
        })
        return { name, git_url: repository.url, git_credential_id: id as string }
      }),
    )
    const wrong = await portreeve.call('POST', '/api/apps', {
      ...left,
      git_credential_id: right!.git_credential_id,
    })
    expect([wrong.status, wrong.body.error.details[0].path]).toEqual([422, 'git_credential_id'])
    for (const one of [left!, right!]) {
      const app = await created('/api/apps', { ...one, soak_seconds: 0 })
      const { body } = await portreeve.call('GET', `/api/apps/${app.id}/deployments`)
      expect(await portreeve.untilDeployment(body.data[0].id)).toMatchObject({ status: 'live' })
      expect((await portreeve.visit(`${one.name}.apps.test`)).body).toBe(one.name)
      const held = await portreeve.call('DELETE', `/api/git-credentials/${one.git_credential_id}`)
      expect(held.status).toBe(409)
    }
  })
  it('leaves no trace of the token: in no command line or environment while git runs, no log, answer, image, container or file', async () => {
    expect(seen.join('\n')).toContain('git-remote-http')
    const secrets = { 'the token': TOKEN, 'the wrong token': 'glpat-canary-expired-token' }
    expect(betrayed(secrets, { 'the process list': seen.join('\n'), ...(await placesOf(app_id)) })).toEqual(
      [],
    )
  })
})
