import { X509Certificate } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { backoff, renewalTime } from '#server/certificates/budget'
import { AcmeError } from '#server/platform/acme/acme'
import { createTestAuthority, type TestAuthority } from '#test/support/chains'
import { type CertificateWorld, createWorld, passAfter, PROJECT } from './world.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
let world: CertificateWorld
let authority: TestAuthority
beforeAll(() => {
  authority = createTestAuthority()
})
afterAll(() => authority.close())
beforeEach(() => {
  world = createWorld()
})
afterEach(() => world.close())

const issue = (...names: string[]) =>
  world.certificates.create(world.actor, PROJECT, { names, auto_renew: true })
const onEdge = (id: string) => world.ingress.certificates.get(id)
const serial = (id: string) => new X509Certificate(onEdge(id)!.pem).serialNumber
const down = () =>
  new AcmeError('unreachable', 'The certificate authority cannot be reached: ca.test does not answer.')

describe('a certificate for a verified domain', () => {
  test('is issued over HTTP-01 that the edge answers, handed to the edge, and told', async () => {
    world.domain('shop.example.com')
    let answered: string | undefined
    world.acme.evaluate = (hostname, challenge) => {
      answered = world.ingress.challenges.get(`${hostname}/${challenge.token}`)
      return answered === challenge.answer ? undefined : 'nothing was found'
    }
    const { id, status } = issue('shop.example.com')
    expect(status).toBe('issuing')
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'active',
      names: ['shop.example.com'],
      key_type: 'ecdsa',
      source: 'acme',
      last_error: null,
      next_attempt_at: null,
      hostnames: ['shop.example.com'],
      renew_at: expect.any(String),
    })
    expect(answered).toEqual(expect.any(String))
    expect(world.ingress.challenges.size).toBe(0)
    expect(onEdge(id)).toMatchObject({ names: ['shop.example.com'] })
    expect(
      world
        .events('certificate.issued')
        .map(({ payload, project_id }) => [payload.certificate_id, project_id]),
    ).toEqual([[id, PROJECT]])
    expect(world.served).toEqual(['dom_shopexamplecom'])
  })
  test.each([
    ['another name', ['other.example.com']],
    ['fewer names', ['example.com']],
  ])('is not taken when the authority signed %s', async (_what, signed) => {
    world.domain('example.com', { aliases: ['www.example.com'] })
    const { session } = world.acme
    world.acme.session = (account) => {
      const honest = session(account)
      return {
        ...honest,
        finalise: (url, key, _names, signal) => honest.finalise(url, key, signed, signal),
      }
    }
    const { id } = issue('example.com', 'www.example.com')
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'failed',
      last_error: expect.stringContaining('does not fit the key and the names'),
    })
    expect(onEdge(id)).toBeUndefined()
  })
  test.each([
    ['a chain that the edge does not load', () => authority.under('rsa:1024', authority.key(), ['x.test'])],
    ['what is no certificate', () => '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    ['more certificates than a chain has', () => authority.intermediate.repeat(30)],
  ])('is not taken when the authority sent %s, and the one before serves on', async (_what, more) => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    const before = serial(id)
    const { session } = world.acme
    world.acme.session = (account) => {
      const honest = session(account)
      return {
        ...honest,
        download: async (url, signal) => (await honest.download(url, signal)) + more(),
      }
    }
    world.certificates.renew(world.actor, id)
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'active',
      last_error: expect.stringContaining(
        'The certificate authority sent a certificate that cannot be served',
      ),
    })
    expect(serial(id)).toBe(before)
  })
  test('has an RSA key where that is asked for, and covers the alias of the domain', async () => {
    const domain = world.domain('example.com', { aliases: ['www.example.com'] })
    const { id } = world.certificates.create(world.actor, PROJECT, {
      domain_id: domain.id,
      key_type: 'rsa',
      auto_renew: true,
    })
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'active',
      key_type: 'rsa',
      hostnames: ['example.com', 'www.example.com'],
    })
    expect(new X509Certificate(onEdge(id)!.pem).publicKey.asymmetricKeyType).toBe('rsa')
  })
  test('is made for a domain by itself, once, and goes with it', async () => {
    const domain = world.domain('shop.example.com')
    world.certificates.follow(domain.id)
    world.certificates.follow(domain.id)
    await world.idle()
    expect([...world.ingress.certificates.values()].map(({ names }) => names)).toEqual([['shop.example.com']])
    domain.aliases = ['www.shop.example.com']
    world.certificates.follow(domain.id)
    await world.idle()
    expect([...world.ingress.certificates.values()].map(({ names }) => names)).toEqual([
      ['shop.example.com', 'www.shop.example.com'],
    ])
    world.domains.splice(0)
    world.certificates.follow(domain.id)
    await world.idle()
    expect([
      world.ingress.certificates.size,
      world.kernel.db.sql('SELECT count(*) FROM certificates').pluck().get(),
    ]).toEqual([0, 0])
    // The one for a name alone, when that with its alias was there, and that one with the domain.
    expect(world.events('certificate.deleted').map(({ payload }) => payload.names)).toEqual([
      ['shop.example.com'],
      ['shop.example.com', 'www.shop.example.com'],
    ])
  })
  test("is made anew for a domain that gives up its alias, so that its renewal does not ask for a name that is nobody's; the old one serves until then", async () => {
    const domain = world.domain('example.com', { aliases: ['www.example.com'] })
    world.certificates.follow(domain.id)
    await world.idle()
    const [both] = world.ingress.certificates.keys()
    domain.aliases = []
    world.acme.failNext('order', new AcmeError('unreachable', 'down'))
    world.certificates.follow(domain.id)
    await world.idle()
    expect([...world.ingress.certificates.keys()]).toEqual([both])
    await passAfter(world, 10 * MINUTE_MS)
    expect([...world.ingress.certificates.values()].map(({ names }) => names)).toEqual([['example.com']])
    expect(
      world.certificates.list(world.actor, { page: 1, per_page: 20 }).data.map(({ names }) => names),
    ).toEqual([['example.com']])
    await passAfter(world, 62 * DAY_MS)
    expect(world.certificates.list(world.actor, { page: 1, per_page: 20 }).data[0]).toMatchObject({
      status: 'active',
      last_error: null,
    })
  })
  test('takes the place of the one for the former name of its domain, which nobody can renew', async () => {
    const domain = world.domain('shop.old.example.com')
    world.certificates.follow(domain.id)
    await world.idle()
    domain.hostname = 'shop.new.example.com'
    world.certificates.follow(domain.id)
    await world.idle()
    expect(
      world.certificates.list(world.actor, { page: 1, per_page: 20 }).data.map(({ names }) => names),
    ).toEqual([['shop.new.example.com']])
    expect([...world.ingress.certificates.values()].map(({ names }) => names)).toEqual([
      ['shop.new.example.com'],
    ])
  })
  test('a wildcard is proven by a TXT record that is taken away again; without a provider the reason is told', async () => {
    const domain = world.domain('*.example.com')
    expect(() => issue('*.example.com')).toThrow(/no DNS provider is set up/)
    world.certificates.follow(domain.id)
    await world.idle()
    const [row] = world.certificates.list(world.actor, { page: 1, per_page: 20 }).data
    expect(row).toMatchObject({
      status: 'failed',
      last_error: expect.stringMatching(/wildcard such as \*\.example\.com.*no DNS provider/),
    })
    expect(world.acme.calls).toEqual([])
    world.provider.on = true
    let seen: readonly string[] | undefined
    world.acme.evaluate = (hostname, challenge) => {
      seen = world.dns.records.get(`_acme-challenge.${hostname}`)
      return seen?.includes(challenge.answer) ? undefined : 'no record'
    }
    await passAfter(world, 6 * MINUTE_MS)
    expect(world.certificates.get(row!.id)).toMatchObject({
      status: 'active',
      names: ['*.example.com'],
      last_error: null,
    })
    expect(seen).toHaveLength(1)
    expect([...world.dns.records.values()].flat()).toEqual([])
  })
  test('is proven in the way that was asked for, whatever the settings say', async () => {
    world.provider.on = true
    world.domain('shop.example.com')
    const proofs: string[] = []
    world.acme.evaluate = (_hostname, challenge) => void proofs.push(challenge.type)
    const { id } = world.certificates.create(world.actor, PROJECT, {
      names: ['shop.example.com'],
      challenge: 'dns-01',
      auto_renew: true,
    })
    await world.idle()
    expect([world.certificates.get(id).status, proofs]).toEqual(['active', ['dns-01']])
  })
  test('is made for some of the names of another one as well, but not twice for the same', async () => {
    world.domain('example.com', { aliases: ['www.example.com'] })
    issue('example.com', 'www.example.com')
    expect(() => issue('www.example.com', 'example.com')).toThrow(
      expect.objectContaining({ code: 'CONFLICT' }),
    )
    const { id } = issue('example.com')
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({ status: 'active', names: ['example.com'] })
  })
  test('a self-signed one needs no authority, lasts for years, and never takes the place of one that clients trust', async () => {
    const domain = world.domain('lab.example.com', { ssl_mode: 'self_signed' })
    world.certificates.follow(domain.id)
    await world.idle()
    const own = world.certificates.list(world.actor, { page: 1, per_page: 20 }).data[0]!
    expect(own).toMatchObject({
      status: 'active',
      source: 'self_signed',
      hostnames: ['lab.example.com'],
      warning: expect.any(String),
    })
    expect(Date.parse(own.not_after!) - world.kernel.clock.now()).toBeGreaterThan(9 * 365 * DAY_MS)
    expect(world.acme.calls).toEqual([])
    domain.ssl_mode = 'acme'
    world.certificates.follow(domain.id)
    await world.idle()
    expect(world.certificates.get(own.id).hostnames).toEqual([])
    expect([...world.ingress.certificates.keys()]).not.toContain(own.id)
  })
  test('stays at the edge when another project changes, also while it moves there', async () => {
    const other = 'prj_00000000000000000002'
    const [moving, staying] = [
      world.domain('moving.example.com', { ssl_mode: 'self_signed' }),
      world.domain('staying.example.org', { ssl_mode: 'self_signed', project_id: other }),
    ]
    for (const { id, project_id } of [moving, staying]) world.certificates.follow(id, project_id)
    await world.idle()
    const removals = vi.spyOn(world.ingress, 'removeCertificate')
    const shown = () => [...world.ingress.certificates.values()].flatMap(({ names }) => names).sort()
    expect(shown()).toEqual(['moving.example.com', 'staying.example.org'])
    world.certificates.follow(moving.id, PROJECT)
    moving.project_id = other
    world.certificates.moved([moving.id], PROJECT)
    await world.idle()
    world.certificates.follow('dom_gone', PROJECT)
    await world.idle()
    expect([shown(), removals.mock.calls]).toEqual([['moving.example.com', 'staying.example.org'], []])
    world.domains.splice(world.domains.indexOf(moving), 1)
    world.certificates.follow(moving.id, other)
    await world.idle()
    expect(shown()).toEqual(['staying.example.org'])
  })
  test('is not asked for when the name is not the project’s: unverified, of another project, above or beside it', () => {
    world.domain('shop.example.com')
    world.domain('theirs.example.com', { project_id: 'prj_00000000000000000002' })
    world.provider.on = true
    for (const name of [
      'example.com',
      'other.example.com',
      'a.shop.example.com',
      'theirs.example.com',
      '*.shop.example.com',
    ])
      expect(() => issue(name), name).toThrow(/is not a verified domain of this project/)
    expect(() => issue('shop.example.com', 'theirs.example.com')).toThrow(/theirs\.example\.com is not/)
    expect(() =>
      world.certificates.create(world.actor, PROJECT, {
        domain_id: 'dom_theirsexamplecom',
        auto_renew: true,
      }),
    ).toThrow(/There is no such domain/)
    expect(world.acme.calls).toEqual([])
  })
  test('of the dashboard is no developer’s to delete or revoke, though it lies in the default project', async () => {
    world.certificates.follow(world.domain('panel.example.com', { of_installation: true }).id)
    await world.idle()
    const [id] = world.ingress.certificates.keys()
    const developer = {
      ...world.actor,
      role: 'member' as const,
      projects: new Map([[PROJECT, 'owner' as const]]),
    }
    for (const revoke of [false, true])
      expect(() => world.certificates.remove(developer, id!, revoke)).toThrow('certificate of the dashboard')
    expect([...world.ingress.certificates.keys()]).toEqual([id])
    world.certificates.remove(world.actor, id!, true)
  })
  test('is not asked for again when the domain is lost: the renewal says so', async () => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    world.domains.splice(0)
    const asked = world.acme.calls.length
    await passAfter(world, 61 * DAY_MS)
    expect(world.certificates.get(id)).toMatchObject({
      status: 'active',
      last_error: expect.stringMatching(/not a verified domain of this project any more/),
      hostnames: [],
    })
    expect(world.acme.calls).toHaveLength(asked)
  })
})

describe('renewal', () => {
  test('comes at two thirds of the lifetime, with jitter; the old one serves until the new one is there', async () => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    const [first, asked] = [serial(id), world.acme.calls.length]
    await passAfter(world, 58 * DAY_MS)
    expect([serial(id), world.acme.calls.length]).toEqual([first, asked])
    let during: string | undefined
    world.acme.evaluate = () => {
      during = serial(id)
      return undefined
    }
    await passAfter(world, 2 * DAY_MS)
    expect(during).toBe(first)
    expect(serial(id)).not.toBe(first)
    expect(world.events('certificate.renewed')).toHaveLength(1)
    expect(renewalTime('2026-01-01T00:00:00.000Z', '2026-04-01T00:00:00.000Z', () => 0.5)).toBe(
      '2026-03-02T00:00:00.000Z',
    )
    expect([
      renewalTime('2026-01-01T00:00:00.000Z', '2026-04-01T00:00:00.000Z', () => 0),
      renewalTime('2026-01-01T00:00:00.000Z', '2026-04-01T00:00:00.000Z', () => 1),
    ]).toEqual(['2026-02-28T04:48:00.000Z', '2026-03-03T19:12:00.000Z'])
  })
  test('is not made for a domain that asks for no certificate any more, and goes on when it does again', async () => {
    const domain = world.domain('shop.example.com')
    world.certificates.follow(domain.id)
    await world.idle()
    const asked = world.acme.calls.length
    domain.ssl_mode = 'off'
    await passAfter(world, 61 * DAY_MS)
    await passAfter(world, HOUR_MS)
    expect([world.acme.calls.length, world.ingress.certificates.size]).toEqual([asked, 0])
    domain.ssl_mode = 'acme'
    await passAfter(world, DAY_MS)
    expect(world.events('certificate.renewed')).toHaveLength(1)
    expect(world.ingress.certificates.size).toBe(1)
  })
  test('that is asked for works at once, and one at a time', async () => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    expect(() => world.certificates.renew(world.actor, id)).toThrow(
      /Cannot issue a certificate while it is issuing/,
    )
    await world.idle()
    const first = serial(id)
    expect(world.certificates.renew(world.actor, id).status).toBe('issuing')
    await world.idle()
    expect(serial(id)).not.toBe(first)
  })
  test('an end that comes near is told at 21, 7 and 1 days, once each, and the end itself', async () => {
    world.domain('shop.example.com')
    const { id } = world.certificates.create(world.actor, PROJECT, {
      names: ['shop.example.com'],
      auto_renew: false,
    })
    await world.idle()
    for (let day = 0; day < 92; day += 1) for (const part of [0.5, 0.5]) await passAfter(world, part * DAY_MS)
    const told = world.events('certificate.expiring').map(({ payload }) => payload)
    expect(told.map(({ days }) => days)).toEqual([21, 7, 1])
    const until = `It ends on ${world.certificates.get(id).not_after!.slice(0, 16).replace('T', ' ')} UTC`
    expect(told.map(({ message }) => message)).toEqual([
      `${until}, in less than 21 days.`,
      `${until}, in less than 7 days.`,
      `${until}, in less than a day.`,
    ])
    expect(world.events('certificate.expired').map(({ payload }) => payload.message)).toEqual([
      until.replace('ends', 'ended').concat('.'),
    ])
    expect(world.certificates.get(id)).toMatchObject({
      status: 'expired',
      hostnames: ['shop.example.com'],
    })
  })
})

describe('a certificate that lives for days only', () => {
  test('raises no notice that its whole life would be below of', async () => {
    world.acme.valid_days = 6
    world.domain('shop.example.com')
    world.certificates.create(world.actor, PROJECT, {
      names: ['shop.example.com'],
      auto_renew: false,
    })
    await world.idle()
    for (let part = 0; part < 13; part += 1) await passAfter(world, DAY_MS / 2)
    expect(world.events('certificate.expiring').map(({ payload }) => payload.days)).toEqual([1])
  })
})

describe('an attempt whose work ended without a word', () => {
  test('is told as interrupted and tried again, and does not wait for ever', async () => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    world.kernel.db
      .sql("UPDATE certificates SET status = 'issuing', not_after = NULL, chain = NULL WHERE id = ?")
      .run(id)
    await passAfter(world, 0)
    expect(world.certificates.get(id)).toMatchObject({
      status: 'failed',
      last_error: expect.stringMatching(/interrupted/),
      next_attempt_at: expect.any(String),
    })
    await passAfter(world, 6 * MINUTE_MS)
    expect(world.certificates.get(id)).toMatchObject({ status: 'active', last_error: null })
  })
})

describe('F33: an authority that does not play along', () => {
  test('is down for two days: the old certificate serves, the state is told, and it is asked a few times only', async () => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    const first = serial(id)
    world.acme.failAll(down())
    world.kernel.clock.advance(60 * DAY_MS)
    const asked = world.acme.calls.length
    for (let minutes = 0; minutes < 2 * 24 * 60; minutes += 5) await passAfter(world, 5 * MINUTE_MS)
    expect(world.acme.calls.length - asked).toBeGreaterThanOrEqual(4)
    expect(world.acme.calls.length - asked).toBeLessThanOrEqual(8)
    expect(world.certificates.get(id)).toMatchObject({
      status: 'active',
      hostnames: ['shop.example.com'],
      last_error: expect.stringMatching(/cannot be reached/),
      next_attempt_at: expect.any(String),
    })
    expect(Date.parse(world.certificates.get(id).next_attempt_at!)).toBeGreaterThan(world.kernel.clock.now())
    expect(serial(id)).toBe(first)
    world.acme.failAll()
    await passAfter(world, 30 * HOUR_MS)
    expect(world.certificates.get(id)).toMatchObject({
      status: 'active',
      last_error: null,
      next_attempt_at: null,
    })
    expect(serial(id)).not.toBe(first)
  })
  test('limits the rate: nothing is asked before its time, not even when somebody asks for it', async () => {
    world.domain('shop.example.com')
    world.acme.failNext(
      'order',
      new AcmeError('rate_limited', 'The certificate authority takes no more requests for now: too many.', {
        retry_after_s: 6 * 3600,
      }),
    )
    const { id } = issue('shop.example.com')
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'failed',
      next_attempt_at: '2026-01-31T18:00:00.000Z',
    })
    const asked = world.acme.calls.length
    await passAfter(world, 5 * HOUR_MS)
    expect(() => world.certificates.renew(world.actor, id)).toThrow(
      expect.objectContaining({ code: 'RATE_LIMITED', retry_after_s: 3600 }),
    )
    expect(world.acme.calls).toHaveLength(asked)
    await passAfter(world, HOUR_MS)
    expect(world.certificates.get(id).status).toBe('active')
  })
  test('sends a text without an end: what is told reads as sentences', async () => {
    world.acme.failAll(new AcmeError('refused', 'no such name'))
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    expect(world.certificates.get(id).last_error).toMatch(/no such name\. [A-Z].*\.$/)
  })
  test('refuses the challenge: its reason is told, the answer is taken away, and five refusals in an hour are the most', async () => {
    world.domain('shop.example.com')
    world.acme.evaluate = () => 'Invalid response: 404'
    const { id } = issue('shop.example.com')
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'failed',
      last_error: expect.stringMatching(/shop\.example\.com: Invalid response: 404/),
      issuer: null,
    })
    expect(world.events('certificate.failed')[0]!.payload).toMatchObject({
      certificate_id: id,
      serves: false,
      next_attempt_at: expect.any(String),
    })
    expect(world.ingress.challenges.size).toBe(0)
    for (let attempt = 0; attempt < 4; attempt += 1) {
      world.certificates.renew(world.actor, id)
      await world.idle()
    }
    const asked = world.acme.calls.length
    expect(() => world.certificates.renew(world.actor, id)).toThrow(/five times in the last hour/)
    expect(() =>
      world.certificates.create(world.actor, PROJECT, {
        names: ['shop.example.com'],
        auto_renew: true,
      }),
    ).toThrow(/already/)
    expect(world.acme.calls).toHaveLength(asked)
    expect(world.certificates.get(id).next_attempt_at! > world.kernel.clock.iso()).toBe(true)
  })
  test('never decides: the attempt ends, and the next one is known', async () => {
    world.domain('shop.example.com')
    world.acme.failNext(
      'settle',
      new AcmeError('pending', 'The certificate authority did not decide within 120 seconds.'),
    )
    const { id } = issue('shop.example.com')
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'failed',
      last_error: expect.stringMatching(/did not decide/),
      next_attempt_at: expect.any(String),
    })
    expect(world.ingress.challenges.size).toBe(0)
  })
  test('forgot the account: a new one is made, once', async () => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    world.acme.forgetAccounts()
    world.certificates.renew(world.actor, id)
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({ status: 'active', last_error: null })
    expect(world.acme.calls.filter((call) => call === 'register')).toHaveLength(2)
  })
  test('sends a certificate for another key: it is not installed', async () => {
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    const first = serial(id)
    const original = world.acme.session
    world.acme.session = (account) => ({
      ...original(account),
      download: async () => onEdge(id)!.pem.slice(0, onEdge(id)!.pem.indexOf('-----BEGIN PRIVATE')),
    })
    world.certificates.renew(world.actor, id)
    await world.idle()
    expect(world.certificates.get(id)).toMatchObject({
      status: 'active',
      last_error: expect.stringMatching(/does not fit the key/),
    })
    expect(serial(id)).toBe(first)
  })
  test('the edge is away when the certificate comes: it is handed over by the next pass', async () => {
    world.domain('shop.example.com')
    world.acme.evaluate = () => {
      world.ingress.failNext('setCertificate', 'The edge does not answer.')
      return undefined
    }
    const { id } = world.certificates.create(world.actor, PROJECT, {
      names: ['shop.example.com'],
      auto_renew: true,
    })
    await world.jobs.idle()
    expect(world.certificates.get(id).status).toBe('active')
    await passAfter(world, 5 * MINUTE_MS)
    expect(onEdge(id)).toMatchObject({ names: ['shop.example.com'] })
  })
  test('the waits between attempts grow to a day and are spread', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 50].map((failures) => backoff(failures, () => 0.5) / MINUTE_MS)).toEqual([
      5, 15, 60, 180, 480, 1440, 1440, 1440,
    ])
    expect([backoff(1, () => 0), backoff(1, () => 1)]).toEqual([4.5 * MINUTE_MS, 5.5 * MINUTE_MS])
  })
})

test('renewals of projects take turns: hundreds that one of them has due keep no other waiting', async () => {
  world.domain('theirs.example.org', { project_id: 'prj_00000000000000000002' })
  world.acme.failAll(down())
  for (let n = 0; n < 100; n += 1) {
    world.domain(`shop-${n}.example.com`)
    issue(`shop-${n}.example.com`)
  }
  await world.idle()
  world.kernel.clock.advance(MINUTE_MS)
  const { id } = world.certificates.create(world.actor, 'prj_00000000000000000002', {
    names: ['theirs.example.org'],
    auto_renew: true,
  })
  await world.idle()
  world.acme.failAll()
  await passAfter(world, HOUR_MS)
  expect(world.certificates.get(id).status).toBe('active')
})

describe('the budget', () => {
  const attempts = (kind: string, subject: string, count: number) => {
    for (let n = 0; n < count; n += 1)
      world.kernel.db
        .sql('INSERT INTO acme_attempts (kind, subject, created_at) VALUES (?, ?, ?)')
        .run(kind, subject, world.kernel.clock.iso())
  }
  test.each([
    ['orders of the whole server in three hours', 'order', '', 250, 3 * HOUR_MS],
    ['certificates of one registered domain in a week', 'issued', 'example.com', 45, 7 * DAY_MS],
  ])(
    '%s are bounded: the order waits and is made by itself',
    async (_what, kind, subject, most, window_ms) => {
      attempts(kind, subject, most)
      world.domain('shop.example.com')
      const { id } = issue('shop.example.com')
      await world.idle()
      expect(world.acme.calls).toEqual([])
      expect(world.certificates.get(id)).toMatchObject({
        status: 'pending',
        next_attempt_at: new Date(world.kernel.clock.now() + window_ms).toISOString(),
        last_error: expect.any(String),
      })
      await passAfter(world, window_ms + MINUTE_MS)
      expect(world.certificates.get(id).status).toBe('active')
    },
  )
  test.each([
    ['example.co.uk', 'other.co.uk'],
    ['team.github.io', 'others.github.io'],
  ])('of %s does not hold up %s, public suffixes counted as authorities do', async (spent, other) => {
    attempts('issued', spent, 45)
    for (const name of [`shop.${spent}`, `shop.${other}`]) world.domain(name)
    const [waiting, made] = [issue(`shop.${spent}`), issue(`shop.${other}`)]
    await world.idle()
    expect([waiting, made].map(({ id }) => world.certificates.get(id).status)).toEqual(['pending', 'active'])
  })
  const OTHER = 'prj_00000000000000000002'
  const issueIn = (project_id: string, ...names: string[]) =>
    world.certificates.create(world.actor, project_id, { names, auto_renew: true })
  const spent = (kind: string) =>
    world.kernel.db
      .sql("SELECT count(*) FROM acme_attempts WHERE kind = ? AND subject NOT LIKE '%@%'")
      .pluck()
      .get(kind)
  test.each([
    ['orders', 'order', '', 190, 203],
    ['certificates of a domain', 'issued', 'example.com', 35, 43],
  ])('of %s holds when all ask at once', async (_what, kind, subject, before, most) => {
    attempts(kind, subject, before)
    for (let n = 0; n < 30; n += 1) world.domain(`shop-${n}.example.com`)
    const asked = Array.from({ length: 30 }, (_, n) => issue(`shop-${n}.example.com`).id)
    await world.idle()
    expect(spent(kind)).toBeGreaterThan(before)
    expect(spent(kind)).toBeLessThanOrEqual(most)
    // Who has to wait has not failed: nobody is told of a fault, and the next attempt is the first.
    const waiting = asked.map((id) => world.certificates.get(id)).filter(({ status }) => status !== 'active')
    expect(waiting.length).toBeGreaterThan(5)
    for (const one of waiting)
      expect(one).toMatchObject({
        status: 'pending',
        next_attempt_at: expect.any(String),
        last_error: expect.stringMatching(/^(This server has asked for|Many certificates were issued)/),
      })
    expect(world.events('certificate.failed')).toEqual([])
  })
  test.each([
    ['orders', 'order', (name: string) => `${name}-shop.test`],
    ['certificates of a domain', 'issued', (name: string) => `${name}.example.com`],
  ])(
    'of %s is not spent by a project that asks again and again: others are given theirs, the dashboard its own, and what is due is renewed',
    async (_what, kind, nameOf) => {
      world.domain(nameOf('old'), { project_id: OTHER })
      const { id } = issueIn(OTHER, nameOf('old'))
      await world.idle()
      world.kernel.clock.advance(61 * DAY_MS)
      const greedy = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => {
        world.domain(nameOf(name))
        return issue(nameOf(name)).id
      })
      await world.idle()
      for (let asked = 0; asked < 40; asked += 1) {
        for (const one of greedy) {
          try {
            world.certificates.renew(world.actor, one)
          } catch (error) {
            expect(error).toMatchObject({ code: 'RATE_LIMITED' })
          }
        }
        await world.idle()
      }
      expect(spent(kind)).toBeGreaterThan(15)
      world.domain(nameOf('new'), { project_id: OTHER })
      const made = issueIn(OTHER, nameOf('new'))
      await world.idle()
      expect(world.certificates.get(made.id).status).toBe('active')
      attempts(kind, kind === 'order' ? '' : 'example.com', kind === 'order' ? 100 : 20)
      const dashboard = world.domain(nameOf('dashboard'), { of_installation: true })
      world.certificates.follow(dashboard.id)
      const renewed = world.acme.calls.length
      await passAfter(world, MINUTE_MS)
      expect(world.acme.calls.length).toBeGreaterThan(renewed)
      expect(world.certificates.get(id).renew_at! > world.kernel.clock.iso()).toBe(true)
      expect([...world.ingress.certificates.values()].flatMap(({ names }) => names)).toContain(
        nameOf('dashboard'),
      )
    },
  )
  test('of orders is not spent by what is due and renewed by hand again and again', async () => {
    world.domain('theirs.example.org', { project_id: OTHER })
    issueIn(OTHER, 'theirs.example.org')
    world.domain('shop.example.com')
    const { id } = issue('shop.example.com')
    await world.idle()
    world.kernel.clock.advance(61 * DAY_MS)
    attempts('order', '', 130)
    attempts('order', `@${PROJECT}`, 130)
    expect(() => world.certificates.renew(world.actor, id)).toThrow(
      expect.objectContaining({ code: 'RATE_LIMITED' }),
    )
    const before = serial(id)
    await passAfter(world, MINUTE_MS)
    expect(serial(id)).not.toBe(before)
  })
  test('counts every order that is placed', async () => {
    attempts('order', '', 199)
    for (const name of ['one.example.com', 'two.example.org']) world.domain(name)
    expect(issue('one.example.com').status).toBe('issuing')
    await world.idle()
    expect(issue('two.example.org')).toMatchObject({
      status: 'pending',
      last_error: expect.stringContaining('asked for many certificates'),
    })
  })
  test('of a week is not forgotten after a day, and of two waits the longer one holds', async () => {
    attempts('issued', 'example.com', 45)
    const end = new Date(world.kernel.clock.now() + 7 * DAY_MS).toISOString()
    await passAfter(world, 6 * DAY_MS)
    attempts('order', '', 250)
    world.domain('shop.example.com')
    expect(issue('shop.example.com')).toMatchObject({ status: 'pending', next_attempt_at: end })
  })
  test('of refusals holds for a wildcard as for any name', async () => {
    world.provider.on = true
    world.domain('*.example.com')
    world.acme.evaluate = () => 'no record'
    const { id } = issue('*.example.com')
    await world.idle()
    for (let attempt = 0; attempt < 4; attempt += 1) {
      world.certificates.renew(world.actor, id)
      await world.idle()
    }
    expect(() => world.certificates.renew(world.actor, id)).toThrow(
      expect.objectContaining({
        code: 'RATE_LIMITED',
        message: expect.stringContaining('five times in the last hour (example.com)'),
      }),
    )
  })
  test('of refusals is not spent by an authority that does not decide', async () => {
    world.domain('shop.example.com')
    world.acme.failNext(
      'settle',
      new AcmeError('pending', 'The certificate authority did not decide within 120 seconds.'),
    )
    const { id } = issue('shop.example.com')
    await world.idle()
    for (let attempt = 0; attempt < 5; attempt += 1) {
      world.acme.failNext(
        'settle',
        new AcmeError('pending', 'The certificate authority did not decide within 120 seconds.'),
      )
      world.certificates.renew(world.actor, id)
      await world.idle()
    }
    expect(world.certificates.renew(world.actor, id).status).toBe('issuing')
  })
})
