import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GitCredential } from '#server/platform/git/git'
import { publishedHostKey } from '#server/platform/git/known-hosts'
import { startSshGitServer, type SshGitServer } from '#test/support/ssh-git-server'
import { createHarness, type Harness } from './setup.ts'

const never = new AbortController().signal

it('the keys of large forges are known before the first contact', () => {
  expect(publishedHostKey('github.com', 22)).toMatch(/^github\.com ssh-ed25519 \S{68}$/)
  expect(publishedHostKey('github.com', 2222)).toBeUndefined()
  expect(publishedHostKey('constructor', 22)).toBeUndefined()
})

describe('over ssh', () => {
  let server: SshGitServer
  let harness: Harness
  let sha: string
  let url: string
  const key = (extra: { private_key?: string; known_hosts?: string } = {}): GitCredential => ({
    kind: 'ssh',
    private_key: server.deploy_key,
    ...extra,
  })
  beforeEach(async () => {
    server = await startSshGitServer()
    harness = await createHarness({ allowed: [server.host, server.git.host] })
    sha = server.git.repository('owner/app').commit({ 'a.txt': 'over ssh' })
    url = server.url('owner/app')
  })
  afterEach(async () => {
    harness.expectClean()
    await harness.close()
    await server.close()
  })

  it('a deploy key reads a repository, with line ends as a browser sends them', async () => {
    expect(await harness.git.resolve({ url, credential: key() }, never)).toEqual({
      branch: 'main',
      sha,
    })
    const directory = await harness.checkout({
      url,
      branch: 'main',
      credential: key({ private_key: server.deploy_key.trim().replaceAll('\n', '\r\n') }),
    })
    expect(readFileSync(join(directory, 'a.txt'), 'utf8')).toBe('over ssh')
    await expect(
      harness.git.resolve({ url, branch: 'absent', credential: key() }, never),
    ).rejects.toMatchObject({
      code: 'branch_not_found',
    })
    await expect(
      harness.git.resolve({ url: server.url('owner/absent'), credential: key() }, never),
    ).rejects.toMatchObject({ code: 'not_found' })
  })

  it('another key, no key, and what is no key are each a sentence without the key', async () => {
    await expect(
      harness.checkout({ url, credential: key({ private_key: server.stranger_key }) }),
    ).rejects.toMatchObject({
      code: 'authentication',
      message: expect.stringContaining('refused the credential'),
    })
    await expect(harness.checkout({ url })).rejects.toMatchObject({
      code: 'authentication',
      message: expect.stringContaining('private or does not exist'),
    })
    await expect(harness.checkout({ url, credential: key({ private_key: 'canary' }) })).rejects.toMatchObject(
      {
        code: 'authentication',
        message: expect.not.stringContaining('canary'),
      },
    )
    await expect(
      harness.checkout({
        url,
        credential: key({
          private_key: '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----',
        }),
      }),
    ).rejects.toMatchObject({
      code: 'authentication',
      message: expect.stringContaining('cannot be read'),
    })
    await expect(harness.checkout({ url, credential: { kind: 'token', token: 'x' } })).rejects.toMatchObject({
      code: 'authentication',
      hint: expect.stringContaining('deploy key'),
    })
    await expect(
      harness.checkout({ url: `${server.git.url}/owner/app.git`, credential: key() }),
    ).rejects.toMatchObject({
      code: 'authentication',
      hint: expect.stringContaining('ssh address'),
    })
    expect(JSON.stringify(harness.commands)).not.toContain(server.deploy_key.split('\n')[2])
  })

  it('the host key of the first contact is remembered, and another one is refused from then on', async () => {
    await harness.git.resolve({ url, credential: key() }, never)
    const pins = join(harness.work_directory, 'known_hosts')
    expect(readdirSync(pins)).toHaveLength(1)
    expect(statSync(join(pins, readdirSync(pins)[0]!)).mode & 0o777).toBe(0o600)
    await server.changeHostKey()
    const [, , now = ''] = server.known_hosts.split(' ')
    const sent = createHash('sha256').update(Buffer.from(now, 'base64')).digest('base64').replace(/=+$/, '')
    await expect(harness.git.resolve({ url, credential: key() }, never)).rejects.toMatchObject({
      code: 'host_key',
      hint: expect.stringMatching(
        new RegExp(`^It sent SHA256:${sent.replaceAll('+', '\\+')}\\. .*known_hosts`),
      ),
    })
  })

  it('a host key that comes with the deploy key is the only one that counts', async () => {
    const { known_hosts } = server
    expect(await harness.git.resolve({ url, credential: key({ known_hosts }) }, never)).toMatchObject({
      sha,
    })
    await server.changeHostKey()
    await expect(harness.git.resolve({ url, credential: key({ known_hosts }) }, never)).rejects.toMatchObject(
      {
        code: 'host_key',
      },
    )
    expect(readdirSync(harness.work_directory)).toEqual([])
  })

  it('the connection goes to the address that was checked, whatever DNS says later', async () => {
    let asked = 0
    const rebinding = await createHarness({
      allowed: [`forge.example.com:${server.port}`],
      resolver: async () => [{ address: ++asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }],
    })
    const named = url.replace('127.0.0.1', 'forge.example.com')
    expect(await rebinding.git.resolve({ url: named, credential: key() }, never)).toMatchObject({
      sha,
    })
    expect(asked).toBe(1)
    await expect(rebinding.git.resolve({ url: named, credential: key() }, never)).rejects.toMatchObject({
      code: 'forbidden_host',
    })
    await rebinding.close()
  })

  it('large files are found by asking the host over ssh, as git-lfs does', async () => {
    const content = 'large file'
    const oid = createHash('sha256').update(content).digest('hex')
    server.git.repository('owner/app').commit({
      '.gitattributes': '*.bin filter=lfs\n',
      'a.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.length}\n`,
    })
    const seen: unknown[] = []
    server.git.intercept = (request, response) => {
      seen.push([request.url, request.headers.authorization])
      if (request.url === '/lfs-over-ssh/objects/batch')
        response.end(
          JSON.stringify({
            objects: [{ oid, actions: { download: { href: `${server.git.url}/object` } } }],
          }),
        )
      else response.end(content)
      return true
    }
    expect(
      readFileSync(join(await harness.checkout({ url, credential: key() }, { lfs: true }), 'a.bin'), 'utf8'),
    ).toBe(content)
    expect(seen).toEqual([
      ['/lfs-over-ssh/objects/batch', 'RemoteAuth x'],
      ['/object', undefined],
    ])
  })
})
