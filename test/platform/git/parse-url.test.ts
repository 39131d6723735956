import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { GitError } from '#server/platform/git/git'
import { checkCommit, checkRef, parseGitUrl } from '#server/platform/git/parse-url'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

const policy = createOutboundPolicy({
  allowed_private_hosts: ['forge.internal', '10.9.0.0/16', 'localhost:3000'],
  interfaces: () => [],
})
const codeOf = (work: () => unknown): string => {
  try {
    work()
    return 'accepted'
  } catch (error) {
    expect(error).toMatchObject({
      name: 'GitError',
      message: expect.stringMatching(/^[A-Z].*\.$/),
      hint: expect.stringMatching(/\.$/),
    })
    return (error as GitError).code
  }
}

describe('an address is read into its parts', () => {
  it.each([
    [
      'https://github.com/user/repo',
      {
        protocol: 'https',
        host: 'github.com',
        port: 443,
        path: '/user/repo',
        url: 'https://github.com/user/repo',
      },
    ],
    [
      'HTTPS://GitHub.com:443/User/Repo.git/',
      {
        protocol: 'https',
        host: 'github.com',
        port: 443,
        path: '/User/Repo.git',
        url: 'https://github.com/User/Repo.git',
      },
    ],
    [
      'https://git.sr.ht/~user/repo',
      {
        protocol: 'https',
        host: 'git.sr.ht',
        port: 443,
        path: '/~user/repo',
        url: 'https://git.sr.ht/~user/repo',
      },
    ],
    [
      'https://gitlab.com/group/sub/sub2/repo.git',
      {
        protocol: 'https',
        host: 'gitlab.com',
        port: 443,
        path: '/group/sub/sub2/repo.git',
        url: 'https://gitlab.com/group/sub/sub2/repo.git',
      },
    ],
    [
      'https://host.example:8443/a/b.git',
      {
        protocol: 'https',
        host: 'host.example',
        port: 8443,
        path: '/a/b.git',
        url: 'https://host.example:8443/a/b.git',
      },
    ],
    [
      'https://dev.azure.com/org/My%20Project/_git/repo',
      {
        protocol: 'https',
        host: 'dev.azure.com',
        port: 443,
        path: '/org/My%20Project/_git/repo',
        url: 'https://dev.azure.com/org/My%20Project/_git/repo',
      },
    ],
    [
      'ssh://git@host.example:2222/a/b.git',
      {
        protocol: 'ssh',
        host: 'host.example',
        port: 2222,
        user: 'git',
        path: '/a/b.git',
        url: 'ssh://git@host.example:2222/a/b.git',
      },
    ],
    [
      'ssh://host.example/a/b.git',
      {
        protocol: 'ssh',
        host: 'host.example',
        port: 22,
        user: 'git',
        path: '/a/b.git',
        url: 'ssh://git@host.example/a/b.git',
      },
    ],
    [
      'git@github.com:user/repo.git',
      {
        protocol: 'ssh',
        host: 'github.com',
        port: 22,
        user: 'git',
        path: 'user/repo.git',
        url: 'git@github.com:user/repo.git',
      },
    ],
    [
      'deploy@host.example:/srv/git/x.git',
      {
        protocol: 'ssh',
        host: 'host.example',
        port: 22,
        user: 'deploy',
        path: '/srv/git/x.git',
        url: 'deploy@host.example:/srv/git/x.git',
      },
    ],
    [
      'http://forge.internal:3000/a/b',
      {
        protocol: 'http',
        host: 'forge.internal',
        port: 3000,
        path: '/a/b',
        url: 'http://forge.internal:3000/a/b',
      },
    ],
    [
      'http://10.9.1.2/a',
      { protocol: 'http', host: '10.9.1.2', port: 80, path: '/a', url: 'http://10.9.1.2/a' },
    ],
    [
      'https://[2606:4700::1]/a/b',
      {
        protocol: 'https',
        host: '2606:4700::1',
        port: 443,
        path: '/a/b',
        url: 'https://[2606:4700::1]/a/b',
      },
    ],
  ])('%s', (text, expected) => expect(parseGitUrl(text, policy)).toEqual(expected))
})

describe('an address is refused', () => {
  it.each([
    '',
    ' ',
    'github.com/user/repo',
    'https://',
    'https:///a/b',
    'https://github.com',
    'https://github.com/',
    'https://github.com//a',
    'https://github.com/a//b',
    'https://github.com/a/../b',
    'https://github.com/a/./b',
    'https://github.com/a/%2e%2e/b',
    'https://github.com/a%2fb',
    'https://github.com/a%00b',
    'https://github.com/a%0ab',
    'https://github.com/a b',
    ' https://github.com/a/b',
    'https://github.com/a/b ',
    'https://github.com/a/b\n',
    'https://github.com/a/b\r',
    'https://github.com/a/b\0',
    'https://github.com/a/\u202eb',
    'https://github.com/-a/b',
    'https://-github.com/a/b',
    'https://github.com/a/b?x=1',
    'https://github.com/a/b#main',
    'https://token@github.com/a/b',
    'https://user:token@github.com/a/b',
    'https://@github.com/a/b',
    'https://github.com:0/a',
    'https://github.com:65536/a',
    'https://github.com:/a',
    'https://github.com:x/a',
    'https://github.com@evil.example.com/a',
    'https://github.com\\@evil.example.com/a',
    'https://githu%62.com/a/b',
    'https://bücher.example/a',
    'https://１.example/a',
    'http://github.com/a/b',
    'git://github.com/a/b',
    'file:///etc',
    'ftp://example.com/a',
    'ext::sh -c touch',
    'javascript:alert(1)',
    'fd::17/foo',
    'C:\\repo',
    '/srv/repo',
    '../repo',
    './repo',
    '--upload-pack=touch /tmp/pwn',
    '-u',
    'ssh://-oProxyCommand=touch/x',
    'ssh://-oProxyCommand=touch${IFS}x/a',
    'ssh://git@-oProxyCommand=x/a',
    'ssh://-x@host.example/a',
    'ssh://git:pw@host.example/a',
    'ssh://git@host.example',
    'ssh://git@host.example/-a',
    'ssh://git@host.example/%20a',
    'ssh://git@x;touch/a.git',
    '-git@host.example:a',
    'git@-host.example:a',
    'git@host.example:-a',
    'git@host.example:',
    'git@host.example:a/../b',
    'git@host.example:a b',
    'git@host.example:a;b',
    'git@host.example:$(x)',
    'git@host.example:`x`',
    'git@a@b.example:x',
    'host.example:repo',
    'git@host.example:a|b',
    "git@host.example:a'b",
    'git@host.example:a"b',
    'https+git://github.com/a',
    'https://github.com/a/b*',
    `https://github.com/a/${'b'.repeat(3000)}`,
    'https://127.1/a',
    'https://2130706433/a',
    'https://0x7f000001/a',
    'https://0177.0.0.1/a',
    'https://0/a',
    'ssh://git@127.1/a',
    'ssh://git@2130706433/a',
    'ssh://git@0x7f.1/a',
    'git@127.1:a',
    'https://[::1%25lo]/a',
    'https://a..b/c',
  ])('as malformed: %j', (text) => expect(codeOf(() => parseGitUrl(text, policy))).toBe('invalid_url'))

  it.each([
    'https://localhost/a',
    'https://localhost:3001/a',
    'https://LOCALHOST/a',
    'https://a.localhost/b',
    'https://engine/a',
    'https://x.internal/a',
    'https://127.0.0.1/a',
    'https://[::1]/a',
    'https://[::ffff:127.0.0.1]/a',
    'https://[::ffff:169.254.169.254]/x.git',
    'https://[64:ff9b::7f00:1]/a',
    'https://[fd00:ec2::254]/a',
    'https://169.254.169.254/a',
    'https://100.64.0.2:8080/fake.git',
    'https://172.17.0.1:9000/api',
    'https://10.0.0.1/a',
    'https://192.168.0.1/a',
    'https://0.0.0.0/a',
    'ssh://git@127.0.0.1/a',
    'ssh://git@localhost/a',
    'git@127.0.0.1:a',
    'git@localhost:a',
    'ssh://git@[::1]/a',
  ])('as private: %s', (text) => expect(codeOf(() => parseGitUrl(text, policy))).toBe('forbidden_host'))

  it('without repeating it, for it may hold a secret', () => {
    for (const text of [
      'https://canary@github.com/a',
      'https://user:canary@github.com/a',
      'https://github.com/canary canary',
      'ssh://git:canary@host.example/a',
      'https://github.com/a?token=canary',
    ]) {
      expect(() => parseGitUrl(text, policy)).toThrow(
        expect.objectContaining({
          message: expect.not.stringContaining('canary'),
          hint: expect.not.stringContaining('canary'),
        }),
      )
    }
  })
})

describe('a branch', () => {
  it.each([
    'main',
    'feature/my-branch',
    'fix#123',
    'v1.2.3+build.5',
    'dependabot/npm_and_yarn/@types/node-24.1.0',
    'a=b',
    'a,b',
    'user/JIRA-1_foo',
    'développement',
    '功能',
    'release-1.x',
    'a@b',
    '100%',
  ])('is accepted: %s', (name) => expect(checkRef(name)).toBe(name))
  it.each([
    '',
    '$(touch${IFS}/tmp/pwn)',
    '--upload-pack=malicious',
    '-b',
    'a..b',
    'feature branch',
    'a\0b',
    'a\nb',
    'a\tb',
    'a'.repeat(256),
    'é'.repeat(128),
    'a~1',
    'a^',
    'a:b',
    'a?',
    'a*',
    'a[b',
    'a\\b',
    'a@{1}',
    '@',
    'HEAD',
    'refs/heads/main',
    '/a',
    'a/',
    'a//b',
    'a.',
    '.a',
    'a/.b',
    'a.lock',
    'a.lock/b',
    'a;b',
    'a|b',
    'a&b',
    '`a`',
    "a'b",
    'a"b',
    'a<b',
    'a>b',
    'a\u202eb',
    'a\u00a0b',
    'a\u200bb',
  ])('is refused: %j', (name) => expect(codeOf(() => checkRef(name))).toBe('branch_not_found'))
})

it('a commit is 7 to 40 hexadecimal digits', () => {
  expect(checkCommit('ABCDEF1')).toBe('abcdef1')
  expect(checkCommit('a'.repeat(40))).toBe('a'.repeat(40))
  expect(checkCommit('a'.repeat(64))).toBe('a'.repeat(64))
  for (const id of ['', 'abcdef', 'a'.repeat(41), 'g'.repeat(40), '--help1', 'HEAD', 'abcdef1\n'])
    expect(codeOf(() => checkCommit(id))).toBe('commit_not_found')
})

describe('shared examples of inputs', () => {
  interface Input {
    field: string
    value: unknown
    why?: string
  }
  /** Examples describe long values by their parts. */
  const build = (value: unknown): unknown => {
    if (value === null || typeof value !== 'object') return value
    if ('$repeat' in value)
      return (value.$repeat as [string, number])[0].repeat((value.$repeat as [string, number])[1])
    return '$concat' in value ? (value.$concat as unknown[]).map(build).join('') : value
  }
  const read = (file: string): Input[] =>
    (JSON.parse(readFileSync(new URL(`../../fixtures/${file}`, import.meta.url), 'utf8')) as Input[]).map(
      (input) => ({
        ...input,
        value: build(input.value),
      }),
    )
  const strings = (file: string, field: string) =>
    read(file)
      .filter((input) => input.field === field && typeof input.value === 'string')
      .map((input) => [input.value as string])
  it.each(strings('inputs-bad.json', 'git_url'))('bad address %j', (value) =>
    expect(codeOf(() => parseGitUrl(value, policy))).not.toBe('accepted'),
  )
  it.each(strings('inputs-good.json', 'git_url'))('good address %j', (value) =>
    expect(codeOf(() => parseGitUrl(value, policy))).toBe('accepted'),
  )
  it.each(strings('inputs-bad.json', 'branch'))('bad branch %j', (value) =>
    expect(codeOf(() => checkRef(value))).not.toBe('accepted'),
  )
  it.each(strings('inputs-good.json', 'branch'))('good branch %j', (value) =>
    expect(codeOf(() => checkRef(value))).toBe('accepted'),
  )
})
