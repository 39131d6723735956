import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startGitServer, type GitServer } from '#test/support/git-server'
import { createHarness, createTrap, type Harness } from './setup.ts'

let server: GitServer
let harness: Harness
let count = 0
const never = new AbortController().signal
beforeAll(async () => {
  server = await startGitServer()
})
afterAll(() => server.close())
beforeEach(async () => {
  harness = await createHarness({ allowed: [server.host] })
})
afterEach(async () => {
  server.intercept = undefined
  harness.expectClean()
  await harness.close()
})
const repository = () => server.repository(`cli/r${(count += 1)}`)

describe('what can be checked out', () => {
  it('a tag in place of a branch, annotated or not', async () => {
    const target = repository()
    const sha = target.commit({ a: '1' })
    target.git('-c', 'user.name=x', '-c', 'user.email=x@example.com', 'tag', '-a', '-m', 'x', 'v1.0.0', sha)
    target.ref('refs/tags/light', sha)
    target.commit({ a: '2' })
    for (const tag of ['v1.0.0', 'light']) {
      expect(await harness.git.resolve({ url: target.url, branch: tag }, never)).toEqual({
        branch: tag,
        sha,
      })
      expect(readFileSync(join(await harness.checkout({ url: target.url, branch: tag }), 'a'), 'utf8')).toBe(
        '1',
      )
    }
  })

  it('the only branch, when HEAD points to one that does not exist', async () => {
    const target = repository()
    const sha = target.commit({ a: '1' }, 'x', { branch: 'develop' })
    expect(await harness.git.resolve({ url: target.url }, never)).toEqual({ branch: 'develop', sha })
    target.commit({ a: '1' }, 'x', { branch: 'other' })
    await expect(harness.git.resolve({ url: target.url }, never)).rejects.toMatchObject({
      code: 'branch_not_found',
      hint: 'Choose a branch that exists: develop, other.',
    })
  })

  it('a repository with SHA-256', async () => {
    const other = server.repository('cli/sha256', { object_format: 'sha256' })
    const sha = other.commit({ a: '256' })
    expect(sha).toHaveLength(64)
    for (const source of [{}, { branch: 'main' }, { branch: 'main', commit: sha }])
      expect(readFileSync(join(await harness.checkout({ url: other.url, ...source }), 'a'), 'utf8')).toBe(
        '256',
      )
  })

  it('a commit of a branch other than the given one, as webhooks name them', async () => {
    const target = repository()
    target.commit({ a: 'main' })
    const sha = target.commit({ a: 'other' }, 'x', { branch: 'other' })
    expect(
      readFileSync(
        join(await harness.checkout({ url: target.url, branch: 'main', commit: sha }), 'a'),
        'utf8',
      ),
    ).toBe('other')
  })

  it('with little history: only the commit itself is fetched', async () => {
    const target = repository()
    for (let index = 0; index < 5; index += 1)
      target.commit({ [`noise-${index}`]: `${index} ${'n'.repeat(1000)}`, a: String(index) })
    await harness.checkout({ url: target.url, branch: 'main' })
    expect(harness.lines.join()).toContain('Receiving objects: 100% (8/8)')
    expect(harness.commands.map(({ argv }) => argv[argv.indexOf('git') + 1])).toEqual([
      'fetch',
      'rev-list',
      'checkout',
      'ls-tree',
    ])
  })
})

describe('the file of credentials', () => {
  const helpers = () =>
    harness.commands
      .flatMap(({ options }) => Object.values(options.env ?? {}))
      .filter((value) => /^store /.test(value))

  it('is no helper of git unless there is a credential, since git would run a shell to hand it that of the proxy', async () => {
    const open = repository()
    open.commit({ a: '1' })
    await harness.checkout({ url: open.url })
    expect(helpers()).toEqual([])
    const token = { kind: 'token' as const, username: 'robot', token: 'tok' }
    await harness.checkout({ url: open.url, credential: token })
    expect(helpers()).not.toEqual([])
  })
})

describe('a failure is a sentence and a hint', () => {
  const failing = async (url: string, allowed: string[] = [], extra = {}) => {
    const own = await createHarness({ allowed, ...extra })
    const error = await own.git.resolve({ url }, never).catch((reason: unknown) => reason as Error)
    own.expectClean()
    await own.close()
    return error
  }
  it('when the host is down', async () => {
    const closed = createServer()
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    for (const url of [
      `http://127.0.0.1:${port}/a`,
      `https://127.0.0.1:${port}/a`,
      `ssh://git@127.0.0.1:${port}/a`,
    ]) {
      expect(await failing(url, ['127.0.0.1'])).toMatchObject({
        code: 'unreachable',
        message: '127.0.0.1 cannot be reached: it refused the connection.',
        hint: expect.stringContaining('host is up'),
      })
    }
  })
  it('when the name is not known to DNS', async () => {
    for (const url of ['https://nowhere.example.com/a', 'git@nowhere.example.com:a']) {
      expect(await failing(url, [], { resolver: async () => [] })).toMatchObject({
        code: 'unreachable',
        message: 'nowhere.example.com cannot be reached: its name is not known to DNS.',
      })
    }
  })
  it('when the certificate is not valid', async () => {
    const tls = await startGitServer({ tls: true })
    tls.repository('a').commit({ a: '1' })
    expect(await failing(`${tls.url}/a.git`, [tls.host])).toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('TLS certificate is not valid'),
      hint: expect.stringContaining('SSL_CERT_FILE'),
    })
    const trusting = await createHarness({ allowed: [tls.host], ca_file: tls.ca_file! })
    expect(await trusting.git.resolve({ url: `${tls.url}/a.git` }, never)).toMatchObject({
      branch: 'main',
    })
    await trusting.close()
    await tls.close()
  })
  it.each<[string, number, string, string, RegExp]>([
    [
      'a web page',
      200,
      '<!doctype html><title>Hello</title>',
      'not_found',
      /no Git repository at this address/,
    ],
    [
      'a web page of several lines',
      200,
      '<!doctype html>\n<title>Hello</title>\n',
      'not_found',
      /no Git repository at this address/,
    ],
    ['404', 404, 'Not here', 'not_found', /no Git repository/],
    ['403', 403, 'No', 'authentication', /private or does not exist/],
    ['429', 429, 'Slow down', 'unreachable', /answered with the error 429/],
    ['500', 500, 'Oops', 'unreachable', /answered with the error 500/],
    ['503', 503, 'Later', 'unreachable', /answered with the error 503/],
  ])('when the server answers with %s', async (_name, status, text, code, message) => {
    server.intercept = (_request, response) => {
      response.writeHead(status, { 'content-type': 'text/html' }).end(text)
      return true
    }
    for (const branch of ['main', undefined])
      await expect(
        harness.checkout({ url: `${server.url}/a.git`, ...(branch ? { branch } : {}) }),
      ).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })
  it('when the connection breaks', async () => {
    const target = repository()
    target.commit({ a: '1' })
    server.intercept = (request, response) => {
      if (!request.url!.endsWith('git-upload-pack') || request.method !== 'POST') return false
      response.writeHead(200, {
        'content-type': 'application/x-git-upload-pack-result',
        'content-length': 1000,
      })
      response.write('00')
      setTimeout(() => response.destroy(), 10)
      return true
    }
    await expect(harness.checkout({ url: target.url })).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('the connection broke'),
    })
  })
  it('when the address, the branch or the commit is not valid: git is not even started', async () => {
    await expect(harness.checkout({ url: '--upload-pack=x' })).rejects.toMatchObject({
      code: 'invalid_url',
    })
    await expect(
      harness.checkout({ url: `${server.url}/a`, branch: '--upload-pack=x' }),
    ).rejects.toMatchObject({
      code: 'branch_not_found',
    })
    await expect(harness.checkout({ url: `${server.url}/a`, commit: '--help' })).rejects.toMatchObject({
      code: 'commit_not_found',
    })
    expect(harness.commands).toEqual([])
  })
  it('when git is not installed', async () => {
    const { SpawnError } = await import('#server/kernel/process')
    expect(
      await failing(`${server.url}/a`, [server.host], {
        run: async () => {
          throw new SpawnError('git', 'ENOENT')
        },
      }),
    ).toMatchObject({ code: 'failed', hint: 'Install git on the server, then try again.' })
  })
})

describe('large files (LFS)', () => {
  const content = 'large '.repeat(1000)
  const oid = createHash('sha256').update(content).digest('hex')
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.length}\n`
  const files = {
    '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
    'a.bin': { mode: '100755' as const, content: pointer },
    'd/copy.bin': pointer,
    'text.txt': 'small',
  }
  /** Answers like an LFS server; `href` is where it sends for the object. */
  const lfsServer = (href: string, body: string, seen: string[] = []) => {
    server.intercept = (request, response) => {
      if (request.url!.endsWith('/info/lfs/objects/batch')) {
        seen.push(String(request.headers.authorization))
        response.writeHead(200, { 'content-type': 'application/vnd.git-lfs+json' })
        response.end(
          JSON.stringify({
            objects: [
              {
                oid,
                size: content.length,
                actions: { download: { href, header: { 'x-lfs': 'yes' } } },
              },
            ],
          }),
        )
      } else if (request.url === '/lfs-store')
        response.writeHead(request.headers['x-lfs'] ? 200 : 403).end(body)
      else return false
      return true
    }
  }

  it('take the place of their pointers, every copy of them', async () => {
    const target = repository()
    target.commit(files)
    lfsServer(`${server.url}/lfs-store`, content)
    const directory = await harness.checkout({ url: target.url }, { lfs: true })
    expect(readFileSync(join(directory, 'a.bin'), 'utf8')).toBe(content)
    expect(statSync(join(directory, 'a.bin')).mode & 0o777).toBe(0o755)
    expect(readFileSync(join(directory, 'd/copy.bin'), 'utf8')).toBe(content)
    expect(readdirSync(directory).sort()).toEqual(['.gitattributes', 'a.bin', 'd', 'text.txt'])
    expect(harness.lines).toContain('Downloading 1 large file (12 KiB) from Git LFS.')
  })

  it('are found also where a folder alone says that it has them, as git lfs track does it there', async () => {
    const target = repository()
    target.commit({ 'site/assets/.gitattributes': files['.gitattributes'], 'site/assets/a.bin': pointer })
    lfsServer(`${server.url}/lfs-store`, content)
    const directory = await harness.checkout({ url: target.url }, { lfs: true })
    expect(readFileSync(join(directory, 'site/assets/a.bin'), 'utf8')).toBe(content)
  })

  it('take it whatever else the repository is called, and leave nothing beside it', async () => {
    const target = repository()
    const long = 'l'.repeat(255)
    target.commit({ ...files, [long]: pointer, 'a.bin.portreeve-lfs': 'of the repository' })
    lfsServer(`${server.url}/lfs-store`, content)
    const directory = await harness.checkout({ url: target.url }, { lfs: true })
    expect(readFileSync(join(directory, long), 'utf8')).toBe(content)
    expect(readFileSync(join(directory, 'a.bin.portreeve-lfs'), 'utf8')).toBe('of the repository')
    harness.expectClean()
  })

  it.each(['null', '5', '{}', '{"objects":5}', '{"objects":[null]}', '{"objects":[{"oid":1}]}', '[', ''])(
    'are said not to be offered by a server that answers %j',
    async (answer) => {
      const target = repository()
      target.commit(files)
      server.intercept = (request, response) => {
        if (!request.url!.endsWith('/objects/batch')) return false
        response.writeHead(200).end(answer)
        return true
      }
      await expect(harness.checkout({ url: target.url }, { lfs: true })).rejects.toMatchObject({
        code: 'failed',
        message: expect.stringContaining('does not offer Git LFS'),
      })
    },
  )

  it('of a private repository are asked for with its token', async () => {
    const target = server.repository('cli/lfs-private', {
      credential: { username: 'robot', password: 'tok' },
    })
    target.commit(files)
    const seen: string[] = []
    lfsServer(`${server.url}/lfs-store`, content, seen)
    await harness.checkout(
      { url: target.url, credential: { kind: 'token', username: 'robot', token: 'tok' } },
      { lfs: true },
    )
    expect(seen).toEqual([`Basic ${Buffer.from('robot:tok').toString('base64')}`])
  })

  it('stay pointers when LFS is off, with a line that says so', async () => {
    const target = repository()
    target.commit(files)
    expect(readFileSync(join(await harness.checkout({ url: target.url }), 'a.bin'), 'utf8')).toBe(pointer)
    expect(harness.lines.join()).toContain('turn on LFS')
  })

  it.each([
    ['more objects than anybody asked for', `${'{"oid":""},'.repeat(80_000)}{"oid":""}`],
    ['a hundred thousand faults', `${'{},'.repeat(100_000)}{}`],
    ['levels without end', '['.repeat(400_000)],
  ])('are refused where the host answers with %s', async (_what, objects) => {
    const target = repository()
    target.commit(files)
    server.intercept = (request, response) => {
      if (!request.url!.endsWith('/info/lfs/objects/batch')) return false
      response.writeHead(200).end(`{"objects":[${objects}]}`)
      return true
    }
    await expect(harness.checkout({ url: target.url }, { lfs: true })).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('does not offer Git LFS'),
    })
  })

  it('are refused when damaged, missing, too large, or at an address of this network', async () => {
    const target = repository()
    target.commit(files)
    const trap = await createTrap()
    lfsServer(`${server.url}/lfs-store`, content.replace('l', 'L'))
    await expect(harness.checkout({ url: target.url }, { lfs: true })).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('hash'),
    })
    lfsServer(`${server.url}/absent`, content)
    await expect(harness.checkout({ url: target.url }, { lfs: true })).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('status 404'),
    })
    lfsServer(`http://127.0.0.1:${trap.port}/x`, content)
    await expect(harness.checkout({ url: target.url }, { lfs: true })).rejects.toMatchObject({
      code: 'forbidden_host',
    })
    lfsServer(`${server.url}/lfs-store`, `${content}more`)
    await expect(harness.checkout({ url: target.url }, { lfs: true })).rejects.toMatchObject({
      code: 'too_large',
    })
    server.intercept = undefined
    await expect(harness.checkout({ url: target.url }, { lfs: true })).rejects.toMatchObject({
      code: 'failed',
    })
    expect(trap.connections()).toBe(0)
    await trap.close()
  })
})
