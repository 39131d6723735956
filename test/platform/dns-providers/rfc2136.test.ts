import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import type { Run, RunOptions, RunResult } from '#server/kernel/process'
import { SpawnError } from '#server/kernel/process'
import { DNS_PROVIDERS, findDnsProvider } from '#server/platform/dns-providers/providers'
import { createRfc2136, rfc2136 } from '#server/platform/dns-providers/rfc2136'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

const SECRET = Buffer.from('a key that nobody else knows').toString('base64')
const config = (changes = {}) =>
  v.parse(rfc2136.config, {
    server: 'ns1.example.com',
    zone: 'example.com',
    key_name: 'portreeve',
    secret: SECRET,
    ...changes,
  })
const policy = createOutboundPolicy({
  allowed_private_hosts: [],
  resolver: async () => [{ address: '93.184.216.34', family: 4 }],
})
const ended = (changes: Partial<RunResult>): RunResult => ({
  exit_code: 0,
  stdout: '',
  stderr: '',
  timed_out: false,
  aborted: false,
  truncated: false,
  duration_ms: 1,
  ...changes,
})
/** A provider whose command answers so, with every call of the command. */
function withCommand(answer: () => RunResult, changes = {}) {
  const calls: { argv: readonly string[]; options: RunOptions }[] = []
  const run: Run = async (argv, options) => {
    calls.push({ argv, options })
    return answer()
  }
  return {
    calls,
    provider: createRfc2136(run).create(config(changes), {
      client: createGuardedClient(policy),
      policy,
    }),
  }
}

describe('dynamic updates', () => {
  test('go to the checked address over TCP, with the key in no argument list and no environment', async () => {
    const { calls, provider } = withCommand(() => ended({}))
    await provider.addTxt('_acme-challenge.example.com', 'value')
    expect(calls[0]!.argv).toEqual(['nsupdate', '-v', '-t', '20'])
    expect(calls[0]!.options.env).toBeUndefined()
    expect(String(calls[0]!.options.stdin).split('\n')).toEqual([
      'server 93.184.216.34 53',
      'zone example.com.',
      `key hmac-sha256:portreeve ${SECRET}`,
      'update add _acme-challenge.example.com. 60 TXT "value"',
      'send',
      'quit',
      '',
    ])
  })
  test.each([
    ['update failed: REFUSED', /does not let the key portreeve change TXT records of the zone example\.com/],
    [
      '; TSIG error with server: tsig indicates error\nupdate failed: NOTAUTH(BADKEY)',
      /refused the key portreeve/,
    ],
    ['update failed: NOTAUTH(BADTIME)', /clocks/],
    ['update failed: NOTAUTH', /not the primary one of the zone/],
    ['; Communication with 93.184.216.34#53 failed: connection refused', /does not answer on TCP port 53/],
    ['update failed: SERVFAIL', /refused the update \(SERVFAIL\)/],
  ])('that fail with «%s» say what to do', async (stderr, sentence) => {
    const { provider } = withCommand(() => ended({ exit_code: 2, stderr }))
    await expect(provider.check()).rejects.toMatchObject({
      name: 'DnsProviderError',
      message: expect.stringMatching(sentence),
    })
  })
  test('that take too long are told as a server that does not answer', async () => {
    await expect(
      withCommand(() => ended({ exit_code: 143, timed_out: true })).provider.check(),
    ).rejects.toMatchObject({
      message: expect.stringMatching(/does not answer/),
    })
  })
  test('say which package is missing when the command is not installed', async () => {
    const { provider } = withCommand(() => {
      throw new SpawnError('nsupdate', 'ENOENT')
    })
    await expect(provider.check()).rejects.toMatchObject({
      name: 'DnsProviderError',
      message: expect.stringMatching(/bind9-dnsutils/),
    })
  })
  test.each(['127.0.0.1', 'localhost', '169.254.169.254', '10.0.0.1', '::1'])(
    'to %s are refused before the command is started',
    async (server) => {
      const { calls, provider } = withCommand(() => ended({}), { server })
      await expect(provider.check()).rejects.toMatchObject({
        name: 'DnsProviderError',
        message: expect.stringMatching(/not public/),
      })
      expect(calls).toEqual([])
    },
  )
  test.each([
    ['server', 'ns1.example.com\nsend'],
    ['server', '-x'],
    ['key_name', 'a b'],
    ['key_name', 'a\nb'],
    ['secret', 'not base64!'],
    ['secret', `${SECRET}\nsend`],
    ['port', 0],
    ['port', 65_536],
    ['algorithm', 'hmac-md5'],
    ['zone', 'com'],
  ])('are not set up with a %s of %j', (field, value) => {
    expect(
      v.safeParse(rfc2136.config, {
        server: 'ns1.example.com',
        zone: 'example.com',
        key_name: 'portreeve',
        secret: SECRET,
        [field]: value,
      }).success,
    ).toBe(false)
  })
})

describe('the providers', () => {
  test('are found by their name, and each secret is a field', () => {
    expect(DNS_PROVIDERS.map(({ name }) => name)).toEqual(['cloudflare', 'rfc2136'])
    expect(findDnsProvider('rfc2136')?.title).toMatch(/2136/)
    expect(findDnsProvider('nobody')).toBeUndefined()
  })
})
