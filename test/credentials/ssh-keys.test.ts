import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generateEd25519, readPrivateKey, readPublicKey } from '#server/ssh-keys/openssh'
import { createTestApi, type TestApi } from '#test/support/api'

let folder: string
let api: TestApi
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portreeve-ssh-'))
  api = await createTestApi({ jobs: false })
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await api.close()
})
let files = 0
/** What OpenSSH itself says about a private key: its public half and fingerprint. */
function askOpenSsh(private_key: string): { public_key: string; fingerprint: string } {
  const path = join(folder, `asked${(files += 1)}`)
  writeFileSync(path, private_key, { mode: 0o600 })
  const line = execFileSync('ssh-keygen', ['-y', '-P', '', '-f', path]).toString().trim()
  writeFileSync(`${path}.pub`, `${line}\n`)
  return {
    public_key: line.split(' ').slice(0, 2).join(' '),
    fingerprint: execFileSync('ssh-keygen', ['-l', '-E', 'sha256', '-f', `${path}.pub`])
      .toString()
      .split(' ')[1]!,
  }
}
function keygen(passphrase: string, ...args: string[]): { private_key: string; public_key: string } {
  const path = join(folder, `made${(files += 1)}`)
  execFileSync('ssh-keygen', ['-q', '-N', passphrase, '-C', 'test', '-f', path, ...args])
  return {
    private_key: readFileSync(path, 'utf8'),
    public_key: readFileSync(`${path}.pub`, 'utf8').split(' ').slice(0, 2).join(' '),
  }
}

describe('keys as OpenSSH understands them', () => {
  it('generates Ed25519 keys that OpenSSH reads', () => {
    for (let i = 0; i < 5; i += 1) {
      const key = generateEd25519('portreeve test')
      const asked = askOpenSsh(key.private_key)
      expect([asked.public_key, asked.fingerprint]).toEqual([
        key.public_key.split(' ').slice(0, 2).join(' '),
        key.fingerprint,
      ])
    }
  })
  const kinds: [string, string[]][] = [
    ['Ed25519', ['-t', 'ed25519']],
    ['RSA', ['-t', 'rsa', '-b', '2048']],
    ['ECDSA P-256', ['-t', 'ecdsa', '-b', '256']],
    ['ECDSA P-521', ['-t', 'ecdsa', '-b', '521']],
    ['RSA as PKCS#1', ['-t', 'rsa', '-b', '2048', '-m', 'PEM']],
    ['ECDSA as SEC 1', ['-t', 'ecdsa', '-b', '384', '-m', 'PEM']],
    ['RSA as PKCS#8', ['-t', 'rsa', '-b', '2048', '-m', 'PKCS8']],
  ]
  it.each(kinds)(
    'imports %s without and with a passphrase, and takes the passphrase off',
    async (_kind, args) => {
      for (const passphrase of ['', 'open sesame']) {
        const made = keygen(passphrase, ...args)
        const key = await readPrivateKey(
          made.private_key.replaceAll('\n', '\r\n'),
          passphrase || undefined,
          'comment',
        )
        expect(key.public_key).toBe(`${made.public_key} comment`)
        expect(askOpenSsh(key.private_key)).toEqual({
          public_key: made.public_key,
          fingerprint: key.fingerprint,
        })
        if (!passphrase) continue
        await expect(readPrivateKey(made.private_key, undefined, '')).rejects.toThrow(
          'protected by a passphrase',
        )
        await expect(readPrivateKey(made.private_key, 'wrong', '')).rejects.toThrow(
          'does not open with this passphrase',
        )
      }
    },
  )
  it('says of every wrong passphrase that it is wrong, also where it opens the key to something', async () => {
    const { private_key } = keygen('open sesame', '-t', 'ecdsa', '-b', '384', '-m', 'PEM')
    const told = new Set<string>()
    for (let i = 0; i < 3000; i += 1)
      told.add(await readPrivateKey(private_key, `wrong ${i}`, '').then(() => 'opened', String))
    expect([...told]).toEqual([expect.stringContaining('does not open with this passphrase')])
  })
  it('imports an Ed25519 key in PKCS#8, which OpenSSH does not read itself', async () => {
    const pem = generateKeyPairSync('ed25519').privateKey.export({
      format: 'pem',
      type: 'pkcs8',
    }) as string
    const key = await readPrivateKey(pem, undefined, 'x')
    expect(askOpenSsh(key.private_key).fingerprint).toBe(key.fingerprint)
  })
  it('refuses a passphrase that would keep the server busy', async () => {
    await expect(
      readPrivateKey(keygen('x y z', '-t', 'ed25519', '-a', '101').private_key, 'x y z', ''),
    ).rejects.toThrow('more than 100 rounds')
  })
  it('refuses short RSA keys, other kinds and what is no key', async () => {
    const pem = (pair: { privateKey: { export(options: object): string | Buffer } }) =>
      pair.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
    await expect(
      readPrivateKey(pem(generateKeyPairSync('rsa', { modulusLength: 1024 })), undefined, ''),
    ).rejects.toThrow('fewer than 2048 bits')
    await expect(readPrivateKey(pem(generateKeyPairSync('x25519')), undefined, '')).rejects.toThrow(
      'a kind that SSH does not use',
    )
    for (const text of [
      '',
      'hello',
      '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----',
      '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
    ]) {
      await expect(readPrivateKey(text, undefined, '')).rejects.toThrow(/is not a private key/)
    }
    for (const text of [
      '',
      'ssh-ed25519',
      'ssh-ed25519 AAAA',
      'ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIJ0v9GmVVGLp9bF2lV5m0m3Uu7mJ6n0fYp7m9x1c2d3e',
      'command="rm" ssh-ed25519 AAAA',
    ])
      expect(() => readPublicKey(text)).toThrow('is not a public key')
  })
})

describe('SSH keys of a project', () => {
  it('shows the public half only, keeps the private half sealed, and lets a clone from the host use it', async () => {
    const made = keygen('open sesame', '-t', 'ed25519')
    const added = await api.as('developer').post('/api/ssh-keys', {
      name: 'deploy',
      private_key: made.private_key,
      passphrase: 'open sesame',
      host: 'Git.Example.com',
      known_hosts: 'git.example.com ssh-ed25519 AAAA\n',
    })
    expect(added.status).toBe(201)
    expect(added.body.data).toMatchObject({
      type: 'ssh-ed25519',
      has_private_key: true,
      host: 'git.example.com',
      public_key: `${made.public_key} deploy`,
    })
    expect(
      JSON.stringify(added.body) + JSON.stringify(api.kernel.db.sql('SELECT * FROM ssh_keys').all()),
    ).not.toContain('PRIVATE KEY')
    api.fakes.git.commit('ssh://git@git.example.com/a/b.git', 'main', { 'index.html': 'x' })
    await api.as('developer').post('/api/apps/detect', { git_url: 'ssh://git@git.example.com/a/b.git' })
    const { credential } = api.fakes.git.calls.at(-1)!.source
    expect(credential).toMatchObject({
      kind: 'ssh',
      known_hosts: 'git.example.com ssh-ed25519 AAAA\n',
    })
    expect(askOpenSsh((credential as { private_key: string }).private_key).public_key).toBe(made.public_key)
    expect(
      (
        await api.as('developer').post('/api/ssh-keys', {
          name: 'again',
          private_key: made.private_key,
          passphrase: 'open sesame',
        })
      ).status,
    ).toBe(409)
  })
  it('takes lines of known_hosts and nothing else, however long it would take to try', async () => {
    const generate = async (known_hosts: string) =>
      (await api.as('developer').post('/api/ssh-keys/generate', { name: 'lines', known_hosts })).status
    for (const refused of [`${'a'.repeat(16_000)}\t`, `${'a\n'.repeat(8_000)}\n`, '\na', ''])
      expect(await generate(refused)).toBe(422)
    expect(await generate('a ssh-ed25519 AAAA\nb ssh-ed25519 BBBB\n')).toBe(201)
  })
  it('is told to lists that follow when it comes and goes, as a token is, without its name', async () => {
    const ids = []
    for (const [path, body] of [
      ['/api/ssh-keys/generate', { name: 'followed' }],
      [
        '/api/git-credentials',
        { name: 'followed', host: 'git.example.com', token: 'a-token-of-some-length' },
      ],
    ] as const) {
      const { id } = (await api.as('developer').post(path, body)).body.data
      await api.as('developer').delete(`${path.replace('/generate', '')}/${id}`)
      ids.push(id)
    }
    const told = api.kernel.db
      .sql('SELECT type, project_id, payload FROM events WHERE payload IN (?, ?) ORDER BY seq')
      .all(...ids.map((id) => JSON.stringify({ id }))) as { type: string; project_id: string }[]
    expect(told.map(({ type }) => type)).toEqual([
      'ssh_key.created',
      'ssh_key.deleted',
      'git_credential.created',
      'git_credential.deleted',
    ])
    expect(new Set(told.map(({ project_id }) => project_id))).toEqual(
      new Set([api.services.http.default_project()]),
    )
  })
  it('is not deleted while an app clones with it', async () => {
    const { id } = (
      await api.as('developer').post('/api/ssh-keys/generate', { name: 'used', host: 'used.example.com' })
    ).body.data
    const url = 'git@used.example.com:a/b.git'
    api.fakes.git.commit(url, 'main', { 'index.html': 'x' })
    expect((await api.as('developer').post('/api/apps', { name: 'uses-key', git_url: url })).status).toBe(201)
    const refused = await api.as('developer').delete(`/api/ssh-keys/${id}`)
    expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining('uses-key')])
    const unused = (
      await api.as('developer').post('/api/ssh-keys/generate', { name: 'unused', host: 'other.example.com' })
    ).body.data.id
    expect((await api.as('developer').delete(`/api/ssh-keys/${unused}`)).status).toBe(200)
  })
  it('says what is wrong with a key and repeats nothing of it', async () => {
    const answer = await api.as('developer').post('/api/ssh-keys', {
      name: 'bad',
      private_key: '-----BEGIN PRIVATE KEY-----\nc2VjcmV0c2VjcmV0\n-----END PRIVATE KEY-----',
    })
    expect([answer.status, answer.body.error.message, answer.text.includes('c2VjcmV0')]).toEqual([
      422,
      'private_key: is not a private key that can be read.',
      false,
    ])
    for (const body of [
      { name: 'x' },
      { name: 'x', public_key: 'a', private_key: 'b' },
      { public_key: 'ssh-rsa' },
    ])
      expect((await api.as('developer').post('/api/ssh-keys', body)).status).toBe(422)
  })
})

describe('tokens for Git hosts', () => {
  it('are sent to their host only, and shown to nobody', async () => {
    const token = 'canary-token-0123456789'
    const added = await api
      .as('developer')
      .post('/api/git-credentials', { name: 'forge', host: 'forge.example.com', token })
    expect([added.status, added.body.data.masked]).toEqual([201, '…6789'])
    expect(
      added.text +
        (await api.as('owner').get('/api/git-credentials')).text +
        JSON.stringify(api.kernel.db.sql('SELECT * FROM git_credentials').all()),
    ).not.toContain(token)
    for (const [url, expected] of [
      ['https://forge.example.com/a/b.git', { kind: 'token', token }],
      ['https://forge.example.com.evil.example.org/a/b.git', undefined],
      ['https://other.example.com/a/b.git', undefined],
    ] as const) {
      api.fakes.git.commit(url, 'main', { 'index.html': 'x' })
      await api.as('developer').post('/api/apps/detect', { git_url: url })
      expect(api.fakes.git.calls.at(-1)!.source.credential).toEqual(expected)
    }
    expect((await api.as('viewer').get('/api/git-credentials')).body.data).toEqual([])
    expect((await api.as('developer').delete(`/api/git-credentials/${added.body.data.id}`)).status).toBe(200)
  })
})
