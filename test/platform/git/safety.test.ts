import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { run } from '#server/kernel/process'
import { startGitServer, type GitServer } from '#test/support/git-server'
import { INSIDE_HOSTS } from '#test/support/inside-hosts'
import { createHarness, createTrap, type Harness } from './setup.ts'

let server: GitServer
let harness: Harness
let count = 0
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
const repository = () => server.repository(`safety/r${(count += 1)}`)
const root = process.getuid?.() === 0

it('where the machine has no more memory, git ends before what runs for users', async () => {
  const told: string[] = []
  const watched = await createHarness({
    allowed: [server.host],
    async run(argv, options) {
      const around = argv.slice(0, argv.indexOf('git'))
      const { stdout } = await run([...around, 'cat', '/proc/self/oom_score_adj'], options)
      told.push(stdout.trim())
      return run(argv, options)
    },
  })
  const target = repository()
  target.commit({ 'a.txt': 'a' })
  await watched.checkout({ url: target.url })
  await watched.close()
  expect(new Set(told)).toEqual(new Set(['1000']))
})

it('git gains no rights, and is held to memory and the size of files by the kernel', async () => {
  const told: string[] = []
  const watched = await createHarness({
    allowed: [server.host],
    async run(argv, options) {
      const around = argv.slice(0, argv.indexOf('git'))
      const { stdout } = await run([...around, 'cat', '/proc/self/limits', '/proc/self/status'], options)
      told.push(stdout)
      return run(argv, options)
    },
  })
  const target = repository()
  target.commit({ 'a.txt': 'a' })
  await watched.checkout({ url: target.url })
  await watched.close()
  expect(told.length).toBeGreaterThan(0)
  for (const text of told) {
    expect(text).toMatch(/^NoNewPrivs:\s+1$/m)
    expect(text).toMatch(/^Max address space\s+4294967296\s+4294967296\s/m)
    expect(text).toMatch(/^Max core file size\s+0\s+0\s/m)
    expect(text).not.toMatch(/^Max file size\s+unlimited/m)
  }
})

describe('nothing of a repository is run', () => {
  it('neither hooks nor filters nor settings nor submodules', async () => {
    const marker = join(tmpdir(), `portreeve-marker-${process.pid}`)
    const sub = repository()
    const sub_sha = sub.commit({ 'sub.txt': 'x' })
    const target = repository()
    target.commit({
      '.gitattributes': '* filter=evil diff=evil merge=evil\n*.txt text eol=lf\n',
      '.gitconfig': `[filter "evil"]\n\tsmudge = touch ${marker}\n[core]\n\tfsmonitor = touch ${marker}\n`,
      '.lfsconfig': `[lfs]\n\turl = http://127.0.0.1:1/\n`,
      'hooks/post-checkout': { mode: '100755', content: `#!/bin/sh\ntouch ${marker}\n` },
      'a.txt': 'a',
      '.gitmodules': `[submodule "sub"]\n\tpath = sub\n\turl = ${sub.url}\n\tupdate = none\n`,
      sub: { mode: '160000', content: sub_sha },
    })
    const directory = await harness.checkout({ url: target.url })
    expect(existsSync(marker)).toBe(false)
    expect(readdirSync(join(directory, 'sub'))).toEqual([])
    expect(existsSync(join(directory, '.git'))).toBe(false)
    expect(harness.lines).toContain('The repository has 1 submodule; submodules are not fetched.')
  })

  it('objects that are made to attack git are refused', async () => {
    const target = repository()
    target.commit({ '.gitmodules': '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n', a: 'a' })
    await expect(harness.checkout({ url: target.url })).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('unsafe'),
    })
    for (const name of ['.git', '.GIT', 'git~1', '..']) {
      const evil = repository()
      evil.commit({ a: 'a' })
      const blob = evil.git('rev-parse', 'HEAD:a')
      const tree = execFileSync(
        'git',
        ['-C', evil.directory, 'hash-object', '-t', 'tree', '-w', '--literally', '--stdin'],
        {
          input: Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(blob, 'hex')]),
          encoding: 'utf8',
        },
      ).trim()
      evil.ref(
        'refs/heads/main',
        evil.git('-c', 'user.name=x', '-c', 'user.email=x@example.com', 'commit-tree', '-m', 'x', tree),
      )
      await expect(harness.checkout({ url: evil.url }), name).rejects.toMatchObject({
        code: 'failed',
        message: expect.stringContaining('unsafe'),
      })
    }
  })

  it('links that lead out of the repository are left out, others stay', async () => {
    const target = repository()
    const link = (content: string) => ({ mode: '120000' as const, content })
    target.commit({
      'a/b.txt': 'b',
      inner: link('a/b.txt'),
      later: link('a/../dist/out'),
      absolute: link('/etc/passwd'),
      up: link('../x'),
      'a/deep': link('../../../etc'),
      jump: link('a'),
      over: link('jump/../../x'),
      self: link('self'),
    })
    const directory = await harness.checkout({ url: target.url })
    expect(readdirSync(directory).sort()).toEqual(['a', 'inner', 'jump', 'later'])
    expect(readdirSync(join(directory, 'a'))).toEqual(['b.txt'])
    expect(harness.lines.filter((line) => line.startsWith('Left out the link')).sort()).toHaveLength(5)
  })

  it('the source is plain: modes by the executable bit, owned by the server', async () => {
    const target = repository()
    target.commit({ 'run.sh': { mode: '100755', content: '#!/bin/sh' }, 'd/a.txt': 'a' })
    const directory = await harness.checkout({ url: target.url })
    const modes = ['.', 'run.sh', 'd', 'd/a.txt'].map((name) => statSync(join(directory, name)).mode & 0o7777)
    expect(modes).toEqual([0o755, 0o755, 0o755, 0o644])
    expect(lstatSync(join(directory, 'd/a.txt')).uid).toBe(process.getuid?.())
  })

  it('names in commits cannot forge log lines', async () => {
    const target = repository()
    target.commit({ a: 'a' }, 'Fix \u001b[31mred\u202e\u0007', { author: 'Eve\u001b[2J' })
    const { message, author } = await harness.git.checkout(
      { url: target.url },
      join(harness.base, 'checkout-x'),
      { lfs: false, onLog() {} },
      new AbortController().signal,
    )
    expect([message, author]).toEqual(['Fix ?[31mred??', 'Eve?[2J'])
  })
})

describe('limits hold', () => {
  it('on the number of files, before one is written: a tree of ten billion files', async () => {
    const target = repository()
    target.commit({ a: 'a' })
    let entry = `100644 blob ${target.git('rev-parse', 'HEAD:a')}`
    for (let level = 0; level < 10; level += 1) {
      const tree = execFileSync('git', ['-C', target.directory, 'mktree'], {
        input: Array.from({ length: 10 }, (_, index) => `${entry}\tn${index}`).join('\n'),
        encoding: 'utf8',
      }).trim()
      entry = `040000 tree ${tree}`
    }
    target.ref(
      'refs/heads/main',
      target.git(
        '-c',
        'user.name=x',
        '-c',
        'user.email=x@example.com',
        'commit-tree',
        '-m',
        'bomb',
        entry.split(' ')[2]!,
      ),
    )
    const small = await createHarness({ allowed: [server.host], limits: { max_files: 1000 } })
    await expect(small.checkout({ url: target.url })).rejects.toMatchObject({
      code: 'too_many_files',
      message: 'The repository has more than 1000 files and folders.',
    })
    small.expectClean()
    await small.close()
  })

  it('on the size of files, and on the bytes that are sent', async () => {
    const zeros = repository()
    zeros.commit({ zeros: Buffer.alloc(3 * 1024 ** 2) })
    const noise = repository()
    noise.commit({
      noise: execFileSync('head', ['-c', String(3 * 1024 ** 2), '/dev/urandom'], {
        maxBuffer: 4 * 1024 ** 2,
      }),
    })
    const small = await createHarness({ allowed: [server.host], limits: { max_bytes: 1024 ** 2 } })
    for (const { url } of [zeros, noise])
      await expect(small.checkout({ url })).rejects.toMatchObject({
        code: 'too_large',
        message: 'The repository is larger than 1 MiB.',
      })
    small.expectClean()
    await small.close()
  })

  it('on time; a cancelled checkout ends at once and leaves nothing', async () => {
    const target = repository()
    target.commit({ a: 'a' })
    let asked = 0
    server.intercept = () => {
      asked += 1
      return true
    }
    const quick = await createHarness({ allowed: [server.host], limits: { timeout_ms: 500 } })
    await expect(quick.checkout({ url: target.url })).rejects.toMatchObject({ code: 'timeout' })
    quick.expectClean()
    await quick.close()
    const controller = new AbortController()
    asked = 0
    const waiting = harness.checkout({ url: target.url }, { signal: controller.signal })
    const expectation = expect(waiting).rejects.toMatchObject({ code: 'aborted' })
    await expect.poll(() => asked).toBe(1)
    controller.abort()
    await expectation
    expect(readdirSync(harness.base)).toEqual([])
  })

  it('on what a crash leaves: sessions of before are removed at the first use', async () => {
    mkdirSync(join(harness.work_directory, 'session-old', 'repository'), { recursive: true })
    const target = repository()
    target.commit({ a: 'a' })
    await harness.git.resolve({ url: target.url }, new AbortController().signal)
    expect(harness.commands.every(({ options }) => options.cwd.startsWith(harness.work_directory))).toBe(true)
    expect(readdirSync(harness.work_directory)).toEqual([])
  })
})

describe('a token', () => {
  const token = 'canary-token-3f9a'
  const encoded = Buffer.from(`robot:${token}`).toString('base64')

  it('is in no argument list, environment, log line or message', async () => {
    const target = server.repository('safety/private', {
      credential: { username: 'robot', password: token },
    })
    target.commit({ a: 'a' })
    const source = {
      url: target.url,
      credential: { kind: 'token' as const, username: 'robot', token },
    }
    const seen: string[] = []
    server.intercept = (request) => {
      // While git waits for this answer, everything about its processes can be read.
      for (const pid of readdirSync('/proc').filter(
        (name) => /^\d+$/.test(name) && name !== String(process.pid),
      )) {
        for (const file of ['cmdline', 'environ']) {
          try {
            const text = readFileSync(`/proc/${pid}/${file}`, 'utf8')
            if (text.includes('git')) seen.push(text)
          } catch {
            // The process has ended.
          }
        }
      }
      seen.push(request.url!)
      return false
    }
    await harness.checkout(source)
    expect(seen.some((text) => text.includes('remote-http') || text.includes('fetch'))).toBe(true)
    server.repository('safety/private', { credential: { username: 'robot', password: 'changed' } })
    const error = await harness.checkout(source).catch((reason: unknown) => reason as Error)
    const said = JSON.stringify([
      seen,
      harness.lines,
      harness.commands.map(({ argv, options: { env } }) => [argv, env]),
      error,
      String((error as Error).message),
      (error as Error).stack,
    ])
    for (const secret of [token, encoded, encodeURIComponent(token)]) expect(said).not.toContain(secret)
  })

  it('stays with its host when the host redirects to another', async () => {
    const other = await startGitServer()
    const target = server.repository('safety/moved', {
      credential: { username: 'robot', password: token },
    })
    const moved = other.repository('safety/moved', {
      credential: { username: 'robot', password: token },
    })
    moved.commit({ a: 'a' })
    const headers: (string | undefined)[] = []
    other.intercept = (request) => {
      headers.push(request.headers.authorization)
      return false
    }
    server.intercept = (request, response) => {
      if (!request.url!.includes('/info/refs')) return false
      response.writeHead(302, { location: `${other.url}${request.url}` }).end()
      return true
    }
    const both = await createHarness({ allowed: [server.host, other.host] })
    await expect(
      both.checkout({ url: target.url, credential: { kind: 'token', username: 'robot', token } }),
    ).rejects.toMatchObject({ code: 'authentication' })
    expect(headers.length).toBeGreaterThan(0)
    expect(headers.filter(Boolean)).toEqual([])
    await both.close()
    await other.close()
  })
})

it.runIf(root)(
  'git runs as an unprivileged user, even when the folder of the server is private',
  async () => {
    const target = repository()
    target.commit({ a: 'a' })
    const users: string[] = []
    server.intercept = () => {
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
        try {
          if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${target.url}`))
            users.push(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!)
        } catch {
          // The process has ended.
        }
      }
      return false
    }
    const private_folder = mkdtempSync(join(tmpdir(), 'portreeve-private-'))
    const hidden = await createHarness({
      allowed: [server.host],
      work_directory: join(private_folder, 'git'),
    })
    expect(readFileSync(join(await hidden.checkout({ url: target.url }), 'a'), 'utf8')).toBe('a')
    expect(users.length).toBeGreaterThan(0)
    expect(new Set(users)).toEqual(new Set(['65534']))
    expect(
      hidden.commands.every(
        ({ options }) => options.cwd.startsWith('/var/tmp/portreeve-git-') && !existsSync(options.cwd),
      ),
    ).toBe(true)
    await hidden.close()
    rmSync(private_folder, { recursive: true, force: true })
  },
)

describe('git connects nowhere else', () => {
  const FORMS = [...INSIDE_HOSTS, 'rebound.example.com']

  it('however a private address is written, over https, http, ssh and scp', async () => {
    const trap = await createTrap()
    const guarded = await createHarness({
      resolver: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    let forms = 0
    for (const host of FORMS) {
      for (const url of [
        `https://${host}:${trap.port}/a/b.git`,
        `http://${host}:${trap.port}/a/b.git`,
        `ssh://git@${host}:${trap.port}/a/b.git`,
        `git@${host}:a/b.git`,
      ]) {
        forms += 1
        await expect(guarded.checkout({ url }), url).rejects.toMatchObject({
          code: expect.stringMatching(/^(invalid_url|forbidden_host)$/),
        })
      }
    }
    expect(forms).toBeGreaterThanOrEqual(40)
    expect(trap.connections()).toBe(0)
    guarded.expectClean()
    await guarded.close()
    await trap.close()
  })

  it('when a server redirects to this machine, to metadata or to a file', async () => {
    const trap = await createTrap()
    const target = repository()
    target.commit({ a: 'a' })
    for (const location of [
      `http://127.0.0.1:${trap.port}/x.git/info/refs?service=git-upload-pack`,
      `http://[::1]:${trap.port}/x.git/info/refs?service=git-upload-pack`,
      `http://2130706433:${trap.port}/x.git/info/refs?service=git-upload-pack`,
      'http://169.254.169.254/latest/info/refs?service=git-upload-pack',
      `https://127.0.0.1:${trap.port}/x.git/info/refs?service=git-upload-pack`,
      'file:///etc/info/refs',
      `ftp://127.0.0.1:${trap.port}/info/refs`,
    ]) {
      server.intercept = (_request, response) => {
        response.writeHead(302, { location }).end()
        return true
      }
      await expect(harness.checkout({ url: target.url, branch: 'main' }), location).rejects.toMatchObject({
        code: 'forbidden_host',
      })
    }
    expect(trap.connections()).toBe(0)
    await trap.close()
  })

  it('when DNS changes its answer between two connections of one run', async () => {
    const port = Number(new URL(server.url).port)
    const target = repository()
    target.commit({ a: 'a' })
    let asked = 0
    const rebinding = await createHarness({
      allowed: [`127.0.0.1:${port}`, `forge.example.com:${port}`],
      resolver: async () => [{ address: ++asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }],
    })
    const url = target.url.replace('127.0.0.1', 'forge.example.com')
    await expect(rebinding.git.resolve({ url }, new AbortController().signal)).rejects.toMatchObject({
      code: 'forbidden_host',
    })
    // The first connection went to the address that was checked; the second answer was checked too.
    expect(server.requests.filter((line) => line.includes(new URL(target.url).pathname))).toHaveLength(1)
    expect(asked).toBe(2)
    await rebinding.close()
  })

  it('but follows the redirect of a renamed repository', async () => {
    const target = repository()
    const sha = target.commit({ a: 'a' })
    server.intercept = (request, response) => {
      if (!request.url!.startsWith('/old/name')) return false
      response.writeHead(301, { location: `${target.url}/info/refs?service=git-upload-pack` }).end()
      return true
    }
    expect(
      await harness.git.resolve({ url: `${server.url}/old/name` }, new AbortController().signal),
    ).toEqual({
      branch: 'main',
      sha,
    })
  })
})
