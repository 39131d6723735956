import { X509Certificate } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AcmeOrder, AcmeSession } from '#server/platform/acme/acme'
import { createAcme } from '#server/platform/acme/client'
import { createGuardedClient, type GuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { type Authority, serveChallenges, startAuthority } from '#test/support/authority'

let authority: Authority
let challenges: Awaited<ReturnType<typeof serveChallenges>>
const clients: GuardedClient[] = []
const acmeFor = (at: Authority, listed = [at.listed]) => {
  const client = createGuardedClient(createOutboundPolicy({ allowed_private_hosts: listed }), {
    ca: [at.ca],
  })
  clients.push(client)
  return createAcme({ client, poll_ms: 50, patience_ms: 20_000 })
}
async function newSession(
  at: Authority,
  eab: { kid: string; hmac_key: string } | null = null,
): Promise<AcmeSession> {
  const acme = acmeFor(at)
  const key = await acme.createKey('ecdsa')
  const { account_url } = await acme.register({
    directory_url: at.directory_url,
    key,
    email: 'ada@example.com',
    eab,
  })
  return acme.session({ directory_url: at.directory_url, key, account_url })
}
async function answerHttp(order: AcmeOrder, session: AcmeSession): Promise<void> {
  for (const { hostname, challenges: offered } of order.authorizations) {
    const challenge = offered.find(({ type }) => type === 'http-01')!
    challenges.answers.set(`${hostname}/.well-known/acme-challenge/${challenge.token}`, challenge.answer)
    await session.accept(challenge)
  }
}
const chainOf = (pem: string) =>
  pem
    .match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)!
    .map((one) => new X509Certificate(one))

beforeAll(async () => {
  authority = await startAuthority({ bad_nonces: 15 })
  challenges = await serveChallenges(authority.http_port)
})
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await challenges.close()
  await authority.close()
})

describe('a real authority that refuses one nonce out of seven', () => {
  test.each(['ecdsa', 'rsa'] as const)(
    'gives a certificate with an %s key for names whose challenges are answered over HTTP',
    async (type) => {
      const session = await newSession(authority)
      const names = [`${type}.example.test`, `www.${type}.example.test`]
      const order = await session.order(names)
      expect(order).toMatchObject({
        status: 'pending',
        authorizations: expect.arrayContaining([
          expect.objectContaining({ hostname: names[0], wildcard: false, status: 'pending' }),
        ]),
      })
      await answerHttp(order, session)
      await session.settle(order.url, 'ready')
      const key = await acmeFor(authority).createKey(type)
      await session.finalise(order.url, key, names)
      await session.settle(order.url, 'valid')
      await session.finalise(order.url, key, names)
      const [leaf, issuer] = chainOf(await session.download(order.url))
      expect(leaf!.subjectAltName).toBe(names.map((name) => `DNS:${name}`).join(', '))
      expect([
        leaf!.publicKey.asymmetricKeyType,
        leaf!.checkIssued(issuer!),
        leaf!.verify(issuer!.publicKey),
      ]).toEqual([type === 'rsa' ? 'rsa' : 'ec', true, true])
      expect((await session.read(order.url)).status).toBe('valid')
      await session.revoke(leaf!.toString())
      await session.revoke(leaf!.toString())
    },
  )

  test('knows an account again that has no e-mail address, or has it no more, and takes its new key', async () => {
    const acme = acmeFor(authority)
    const key = await acme.createKey('ecdsa')
    const register = (email: string | null, with_key = key) =>
      acme.register({ directory_url: authority.directory_url, key: with_key, email, eab: null })
    const { account_url } = await register(null)
    for (const email of [null, 'ada@example.com', null, null])
      expect(await register(email)).toEqual({ account_url })
    const next = await acme.createKey('ecdsa')
    await acme.session({ directory_url: authority.directory_url, key, account_url }).rollKey(next)
    expect(await register(null, next)).toEqual({ account_url })
  })

  test('gives a wildcard for TXT records, and offers no other way for it', async () => {
    const session = await newSession(authority)
    const names = ['*.wild.example.test', 'wild.example.test']
    const order = await session.order(names)
    const wildcard = order.authorizations.find((one) => one.wildcard)!
    expect(wildcard).toMatchObject({
      hostname: 'wild.example.test',
      challenges: [{ type: 'dns-01' }],
    })
    for (const { hostname, challenges: offered } of order.authorizations) {
      const challenge = offered.find(({ type }) => type === 'dns-01')!
      await authority.setTxt(`_acme-challenge.${hostname}`, challenge.answer)
      await session.accept(challenge)
    }
    await session.settle(order.url, 'ready')
    await session.finalise(order.url, await acmeFor(authority).createKey('ecdsa'), names)
    await session.settle(order.url, 'valid')
    expect(chainOf(await session.download(order.url))[0]!.subjectAltName).toContain('DNS:*.wild.example.test')
  })

  test('tells why it refused a challenge, with the name', async () => {
    const session = await newSession(authority)
    const order = await session.order(['nothing.example.test'])
    await session.accept(order.authorizations[0]!.challenges.find(({ type }) => type === 'http-01')!)
    await expect(session.settle(order.url, 'ready')).rejects.toMatchObject({
      name: 'AcmeError',
      code: 'refused',
      message: expect.stringMatching(/refused: nothing\.example\.test: .*(404|Non-200)/),
    })
  })

  test('an account takes a new key, goes on with it, and is found again by it; the old key is worth nothing', async () => {
    const acme = acmeFor(authority)
    const [key, next] = [await acme.createKey('ecdsa'), await acme.createKey('ecdsa')]
    const { account_url } = await acme.register({
      directory_url: authority.directory_url,
      key,
      email: null,
      eab: null,
    })
    const session = acme.session({ directory_url: authority.directory_url, key, account_url })
    await session.rollKey(next)
    await session.order(['rolled.example.test'])
    expect(
      await acme.register({
        directory_url: authority.directory_url,
        key: next,
        email: 'new@example.com',
        eab: null,
      }),
    ).toEqual({ account_url })
    await expect(
      acme.session({ directory_url: authority.directory_url, key, account_url }).order(['old.example.test']),
    ).rejects.toMatchObject({ name: 'AcmeError' })
  })

  test('an account that it does not know is told apart from other refusals', async () => {
    const acme = acmeFor(authority)
    const session = await newSession(authority)
    const unknown = acme.session({
      directory_url: authority.directory_url,
      key: await acme.createKey('ecdsa'),
      account_url: `${new URL(authority.directory_url).origin}/my-account/999999`,
    })
    await expect(unknown.order(['gone.example.test'])).rejects.toMatchObject({ code: 'account' })
    await expect(session.order(['not a name'])).rejects.toMatchObject({ code: 'refused' })
  })

  test('is not reached at a private address that the operator did not list', async () => {
    const acme = acmeFor(authority, [])
    await expect(
      acme.register({
        directory_url: authority.directory_url,
        key: await acme.createKey('ecdsa'),
        email: null,
        eab: null,
      }),
    ).rejects.toMatchObject({ code: 'unreachable', message: expect.stringMatching(/not public/) })
  })

  test('that is down is told as unreachable, without waiting', async () => {
    const session = await newSession(authority)
    await authority.stop()
    await expect(session.order(['down.example.test'])).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/cannot be reached/),
    })
    await authority.start()
  })
})

test('an authority that asks for an external account binding takes the right one, and refuses none and a wrong one', async () => {
  const eab = {
    kid: 'kid-1',
    hmac_key: Buffer.from('0123456789abcdef0123456789abcdef').toString('base64url'),
  }
  const bound = await startAuthority({ eab })
  try {
    const session = await newSession(bound, eab)
    expect((await session.order(['bound.example.test'])).status).toBe('pending')
    await expect(newSession(bound)).rejects.toMatchObject({ code: 'refused' })
    await expect(
      newSession(bound, {
        ...eab,
        hmac_key: Buffer.from('another key of thirty-two bytes!').toString('base64url'),
      }),
    ).rejects.toMatchObject({ code: 'refused' })
  } finally {
    await bound.close()
  }
})
