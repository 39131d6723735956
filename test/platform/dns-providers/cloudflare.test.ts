import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cloudflare, createCloudflare } from '#server/platform/dns-providers/cloudflare'
import type { DnsProvider } from '#server/platform/dns-providers/provider'
import { createGuardedClient, type GuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { type CloudflareApi, startCloudflareApi, TOKEN } from './cloudflare-api.ts'
import { describeDnsProvider, ZONE } from './contract.ts'

const policyFor = (api: CloudflareApi) =>
  createOutboundPolicy({ allowed_private_hosts: [new URL(api.url).host] })
const configOf = (zone: string, api_token: string) => v.parse(cloudflare.config, { zone, api_token })

describeDnsProvider('cloudflare', async () => {
  const api = await startCloudflareApi()
  return {
    descriptor: createCloudflare(api.url),
    policy: policyFor(api),
    close: () => api.close(),
    config: { zone: ZONE, api_token: TOKEN },
    wrong: { zone: ZONE, api_token: 'wrong-token-0123456789-wrong' },
    read: async (name) =>
      api.records.filter((record) => record.name === name).map(({ content }) => content.replaceAll('"', '')),
  }
})

describe('Cloudflare', () => {
  let api: CloudflareApi
  let client: GuardedClient
  let provider: DnsProvider
  beforeAll(async () => {
    api = await startCloudflareApi()
    client = createGuardedClient(policyFor(api))
    provider = createCloudflare(api.url).create(configOf(ZONE, TOKEN), {
      client,
      policy: policyFor(api),
    })
  })
  afterAll(async () => {
    await client.close()
    await api.close()
  })

  test('is asked for the zone once', async () => {
    await provider.addTxt(`_acme-challenge.${ZONE}`, 'one')
    await provider.removeTxt(`_acme-challenge.${ZONE}`, 'one')
    expect(api.seen.filter((line) => line.includes('/zones?'))).toHaveLength(1)
  })
  test.each([
    [
      'its limit of requests',
      429,
      '{"success":false,"errors":[{"code":10013,"message":"Rate limited"}],"result":null}',
      { 'retry-after': '37' },
      /37 seconds/,
    ],
    [
      'an error of its own',
      500,
      '{"success":false,"errors":[{"code":1000,"message":"Something broke"}]}',
      {},
      /Something broke \(1000\)/,
    ],
    [
      'a page instead of its API',
      502,
      '<html>bad gateway</html>',
      {},
      /did not answer as its API does \(HTTP 502\)/,
    ],
    ['a redirect, which is not followed', 302, '', { location: 'http://127.0.0.1:1/' }, /HTTP 302/],
  ])('tells %s in one sentence', async (_what, status, body, headers, sentence) => {
    api.next(status, body, headers as Record<string, string>)
    await expect(provider.addTxt(`_acme-challenge.${ZONE}`, 'two')).rejects.toMatchObject({
      name: 'DnsProviderError',
      message: expect.stringMatching(sentence),
    })
  })
  test('says when the token does not reach the zone', async () => {
    const other = createCloudflare(api.url).create(configOf('other.test', TOKEN), {
      client,
      policy: policyFor(api),
    })
    await expect(other.check()).rejects.toMatchObject({
      message: expect.stringMatching(/reaches no zone other\.test/),
    })
  })
  test('is not reached where the policy does not allow it', async () => {
    const strict = createOutboundPolicy({ allowed_private_hosts: [] })
    const guarded = createGuardedClient(strict)
    const before = api.seen.length
    await expect(
      createCloudflare(api.url.replace('http:', 'https:'))
        .create(configOf(ZONE, TOKEN), { client: guarded, policy: strict })
        .check(),
    ).rejects.toMatchObject({
      name: 'DnsProviderError',
      message: expect.stringMatching(/not public/),
    })
    expect(api.seen).toHaveLength(before)
    await guarded.close()
  })
  test('takes no configuration with a field that would aim its requests', () => {
    expect(
      v.safeParse(cloudflare.config, { zone: ZONE, api_token: TOKEN, api_base: 'http://127.0.0.1' }).success,
    ).toBe(false)
    for (const zone of ['', 'localhost', '*.example.com', 'a b.test', 'exa\nmple.test'])
      expect(v.safeParse(cloudflare.config, { zone, api_token: TOKEN }).success, zone).toBe(false)
    expect(v.parse(cloudflare.config, { zone: 'Example.TEST.', api_token: TOKEN })).toEqual({
      zone: ZONE,
      api_token: TOKEN,
      proxied: false,
    })
  })
})
