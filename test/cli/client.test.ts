import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nameOfFolder } from '../../cli/client/apps.ts'
import {
  findContext,
  isOpenToOthers,
  readContexts,
  serverUrl,
  writeContexts,
} from '../../cli/client/contexts.ts'
import { ago, span, table } from '../../cli/client/output.ts'
import { sourceArchive } from '../../cli/client/source-archive.ts'
import { sourceFiles } from '../../cli/client/source-files.ts'
import { CLIENT_VERBS } from '../../cli/client-verbs.ts'
import { HOST_VERBS } from '../../cli/host-verbs.ts'
import { createProgram, runProgram } from '../../cli/program.ts'
import { chooseVerbs } from '../../cli/verb-choice.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptr-client-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))
const write = (path: string, content = path) => {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), content)
}

describe('contexts', () => {
  it('are kept in a file for their user alone, and rights that others were given are taken away', () => {
    const path = join(folder, 'deep/credentials.json')
    const env = { PORTREEVE_CREDENTIALS: path }
    writeContexts(env, { current: 'a', contexts: { a: { url: 'https://a.test', token: 't' } } })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    chmodSync(path, 0o644)
    expect(findContext(env)).toEqual({ name: 'a', context: { url: 'https://a.test', token: 't' } })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(() => findContext(env, 'constructor')).toThrow('There is no context constructor. There are: a.')
    for (const edited of [
      '[]',
      '{"contexts":{"a":null}}',
      '{"contexts":{"a":{"token":"t"}}}',
      '{"contexts":{"a":{"url":"https://a.test","token":1}}}',
    ]) {
      writeFileSync(path, edited)
      expect(() => readContexts(env), edited).toThrow('Remove it and log in again')
    }
  })
  it('are never written into a file that somebody else has laid there and can read', () => {
    const path = join(folder, 'credentials.json')
    const laid = `${path}.${process.pid}.partial`
    writeFileSync(laid, '')
    chmodSync(laid, 0o666)
    writeContexts({ PORTREEVE_CREDENTIALS: path }, { current: 'a', contexts: {} })
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })
  it('give way to a server that the environment names', () => {
    const env = {
      PORTREEVE_CREDENTIALS: join(folder, 'none'),
      PORTREEVE_URL: 'deploy.example.com',
      PORTREEVE_API_KEY: 'k\n',
    }
    expect(findContext(env)?.context).toEqual({ url: 'https://deploy.example.com', api_key: 'k' })
    expect(findContext({ PORTREEVE_CREDENTIALS: join(folder, 'none') })).toBeUndefined()
  })
  it('take addresses as people type them, and refuse what is none', () => {
    expect(
      ['localhost:9000', '192.168.1.5:9000', 'example.com', 'http://example.com/'].map(serverUrl),
    ).toEqual([
      'http://localhost:9000',
      'http://192.168.1.5:9000',
      'https://example.com',
      'http://example.com',
    ])
    const only_alike = [
      'localhost.example.com',
      '127.example.com',
      '10.example.com:80',
      '192.168.1.5.example.com',
    ]
    expect(only_alike.map((text) => new URL(serverUrl(text)).protocol)).toEqual(
      only_alike.map(() => 'https:'),
    )
    expect(only_alike.map((text) => isOpenToOthers(`http://${text}`))).toEqual(only_alike.map(() => true))
    for (const wrong of ['ftp://x', 'https://a:b@x', 'https://x/path', 'https://'])
      expect(() => serverUrl(wrong)).toThrow('is no address of a server')
    expect(['http://example.com', 'http://localhost:1', 'https://example.com'].map(isOpenToOthers)).toEqual([
      true,
      false,
      false,
    ])
  })
})

describe('the source that is sent', () => {
  it('is what .gitignore leaves, by the rules of each folder, where git knows nothing of it', async () => {
    write('.gitignore', '*.log\n/build/\n!keep.log\n')
    for (const path of ['a.txt', 'x.log', 'keep.log', 'build/out.js', 'web/build/in.js', '.env.example'])
      write(path)
    write('web/.gitignore', 'local.txt\n')
    write('web/local.txt')
    write('.git/config')
    expect(await sourceFiles(folder)).toEqual(
      ['.env.example', '.gitignore', 'a.txt', 'keep.log', 'web/.gitignore', 'web/build/in.js'].sort(),
    )
    await expect(sourceFiles(join(folder, 'a.txt'))).rejects.toThrow('is no folder')
  })
  it('has no secrets that an import wrote, whether git was told of them or not', async () => {
    for (const path of ['a.txt', 'portreeve.secrets', 'web/portreeve.secrets']) write(path)
    expect(await sourceFiles(folder)).toEqual(['a.txt'])
    execFileSync('git', ['init', '-q', folder])
    expect(await sourceFiles(folder)).toEqual(['a.txt'])
  })
  it('is listed by git without a program that the folder itself names', async () => {
    write('a.txt')
    write('watch.sh', `#!/bin/sh\ntouch '${join(folder, 'ran')}'\n`)
    chmodSync(join(folder, 'watch.sh'), 0o755)
    execFileSync('git', ['init', '-q', folder])
    execFileSync('git', ['-C', folder, 'config', 'core.fsmonitor', join(folder, 'watch.sh')])
    expect(await sourceFiles(folder)).toEqual(['a.txt', 'watch.sh'])
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })
  it('is packed with contents, links and the right to run, and is the same each time', async () => {
    write('run.sh', '#!/bin/sh\n')
    chmodSync(join(folder, 'run.sh'), 0o755)
    write('empty', '')
    write('data.txt', 'x'.repeat(70_000))
    symlinkSync('data.txt', join(folder, 'link'))
    const files = await sourceFiles(folder)
    const found: Record<string, unknown> = {}
    const unpacked = sourceArchive(folder, files).pipe(createGunzip()).pipe(extract())
    for await (const entry of unpacked) {
      const { name, mode, type, linkname } = entry.header
      found[name] = [type, mode, type === 'symlink' ? linkname : (await text(entry)).length]
      entry.resume()
    }
    expect(found).toEqual({
      'data.txt': ['file', 0o644, 70_000],
      empty: ['file', 0o644, 0],
      link: ['symlink', expect.any(Number), 'data.txt'],
      'run.sh': ['file', 0o755, 10],
    })
  })
  it('names an app after its folder', () => {
    expect(['/x/My Shop', '/x/_Ünder--score_', '/x/shop.git'].map(nameOfFolder)).toEqual([
      'my-shop',
      'nder-score',
      'shop-git',
    ])
  })
})

describe('what is shown', () => {
  it('stands in columns, also where a cell has colours', () => {
    expect(
      table(
        ['a', 'b'],
        [
          ['\u001b[32mlonger\u001b[39m', '1'],
          ['x', '22'],
        ],
      )
        .split('\n')
        .slice(1),
    ).toEqual(['\u001b[32mlonger\u001b[39m  1', 'x       22'])
    const now = Date.parse('2026-11-22T12:00:00Z')
    expect(
      ['2026-11-22T11:59:58Z', '2026-11-22T09:30:00Z', '2026-11-12T12:00:00Z'].map((at) => ago(at, now)),
    ).toEqual(['2 s ago', '2 h ago', '10 d ago'])
    expect([0, 59, 60, 3599, 7200, 864_000].map(span)).toEqual([
      '0 s',
      '59 s',
      '1 min',
      '59 min',
      '2 h',
      '10 d',
    ])
  })
})

describe('verbs', () => {
  const program = (...words: string[]) =>
    createProgram('1.2.3', [{ heading: 'Client:', verbs: CLIENT_VERBS }], words).then((made) =>
      runProgram(made, words),
    )
  it('all load, say what they do, and refuse options that they do not know', async () => {
    for (const { name } of CLIENT_VERBS)
      await expect(program(name, '--no-such-option'), name).rejects.toMatchObject({ exit_code: 2 })
    for (const { name, load } of [...CLIENT_VERBS, ...HOST_VERBS])
      expect((await load()).default, name).toBeTypeOf('function')
  })
  it('that both the client and the host have are the host’s only where nobody is logged in and nothing is named', () => {
    const verb = (name: string) => ({
      name,
      summary: '',
      load: () => Promise.reject(new Error('not loaded')),
    })
    const [client, host] = [
      [verb('status'), verb('apps')],
      [verb('status'), verb('serve')],
    ]
    const owner = (words: string[], is_client: boolean) => {
      const chosen = chooseVerbs(client, host, { words, is_client })
      return chosen.host.some(({ name }) => name === 'status') ? 'host' : 'client'
    }
    expect(owner(['status'], false)).toBe('host')
    expect(owner(['status'], true)).toBe('client')
    expect(owner(['status', '--context', 'x'], false)).toBe('client')
    expect(owner(['status', 'shop'], false)).toBe('client')
    expect(owner(['status', '-n', '5'], false)).toBe('host')
    expect(owner(['apps'], false)).toBe('client')
  })
})
