import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { AcmeError } from '#server/platform/acme/acme'
import { createTestAuthority, type TestAuthority } from '#test/support/chains'
import { type CertificateWorld, createWorld, PROJECT } from './world.ts'

const NAMES = ['shop.example.com', '*.example.com']
let authority: TestAuthority
let world: CertificateWorld
let key: string
let leaf: string
beforeAll(() => {
  authority = createTestAuthority()
  key = authority.key()
  leaf = authority.leaf(key, NAMES)
})
afterAll(() => authority.close())
beforeEach(() => {
  world = createWorld()
  world.kernel.clock.set(new Date(Date.now() + 3_600_000).toISOString())
})
afterEach(() => world.close())

const upload = (certificate: string, private_key: string | null = key, changes: object = {}) =>
  world.certificates.create(world.actor, PROJECT, {
    certificate,
    ...(private_key ? { private_key } : {}),
    auto_renew: true,
    ...changes,
  })
/** What is read as an RSA key of 4608 bits: finding primes for a real one takes ten seconds. */
const hugeKey = () => {
  const odd = (bytes: number) =>
    Buffer.concat([Buffer.from([0xff]), randomBytes(bytes - 2), Buffer.from([1])]).toString('base64url')
  const [n, d, p, q, dp, dq, qi] = [odd(576), odd(575), odd(288), odd(288), odd(287), odd(287), odd(287)]
  const key = { kty: 'RSA', e: 'AQAB', n, d, p, q, dp, dq, qi }
  return String(createPrivateKey({ key, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' }))
}
/** The same certificate with other times of its own length: `YYMMDDhhmmssZ`. */
const dated = (pem: string, { from, until }: { from?: string; until?: string }) => {
  const bytes = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  const header = Buffer.from([0x17, 13])
  const first = bytes.indexOf(header)
  if (from) bytes.write(from, first + header.length, 'latin1')
  if (until) bytes.write(until, bytes.indexOf(header, first + 1) + header.length, 'latin1')
  return `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}
const subjects = (pem: string) =>
  pem
    .match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)!
    .map((one) => new X509Certificate(one).subject.split('\n').at(-1))

describe('an uploaded chain', () => {
  test('is put in order, loses its root, and is shown for the verified domains that it covers', async () => {
    world.domain('shop.example.com', { ssl_mode: 'custom' })
    world.domain('blog.example.com', { ssl_mode: 'custom' })
    world.domain('other.test', { ssl_mode: 'custom' })
    const made = upload(
      [authority.root, authority.intermediate, 'some text between\n', leaf]
        .join('\n')
        .replaceAll('\n', '\r\n'),
    )
    await world.idle()
    expect(made).toMatchObject({
      source: 'upload',
      status: 'active',
      names: NAMES,
      issuer: 'Test (Test Intermediate)',
      key_type: 'ecdsa',
      auto_renew: false,
      renew_at: null,
      not_after: expect.any(String),
      serial_number: expect.any(String),
    })
    const shown = world.ingress.certificates.get(made.id)!
    expect(subjects(shown.pem)).toEqual(['CN=leaf', 'CN=Test Intermediate'])
    expect(shown.names).toEqual(['blog.example.com', 'shop.example.com'])
    expect(world.certificates.get(made.id).hostnames).toEqual(['blog.example.com', 'shop.example.com'])
  })
  test('goes on with the certificate whose key signed, not with another of the same name and key identifier', async () => {
    world.domain('shop.example.com', { ssl_mode: 'custom' })
    const made = upload([leaf, authority.namesake(), authority.intermediate].join(''))
    await world.idle()
    expect(
      world.ingress.certificates
        .get(made.id)!
        .pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g),
    ).toEqual([leaf, authority.intermediate])
  })
  test('never takes a name that is not a verified domain of its project, whatever it claims', async () => {
    world.domain('shop.example.com', { project_id: 'prj_00000000000000000002', ssl_mode: 'custom' })
    expect(upload(leaf).hostnames).toEqual([])
    await world.idle()
    expect(world.ingress.certificates.size).toBe(0)
  })
  test('without its intermediate is taken with a warning that says which one is missing', () => {
    expect(upload(leaf).warning).toMatch(
      /intermediate certificate may be missing: Test \(Test Intermediate\), which signed leaf/,
    )
    expect(upload(`${leaf}${authority.intermediate}${authority.root}`).warning).toMatch(
      /ends with Test Root, which no client trusts/,
    )
  })
  test('with an RSA key is fine as well', () => {
    const rsa = authority.key('rsa:2048')
    expect(
      upload(`${authority.leaf(rsa, ['shop.example.com'])}${authority.intermediate}`, rsa),
    ).toMatchObject({
      key_type: 'rsa',
      status: 'active',
    })
  })
  test('on P-384, or for servers among other uses, is fine as well', () => {
    const wide = authority.key('ec:secp384r1')
    expect(
      upload(
        `${authority.leaf(wide, ['shop.example.com'], { use: 'serverAuth,clientAuth' })}${authority.intermediate}`,
        wide,
      ),
    ).toMatchObject({ key_type: 'ecdsa', status: 'active' })
  })
  test('with a root that vouches for itself with SHA-1 is fine as well: clients do not look at that signature', () => {
    expect(upload(`${leaf}${authority.intermediate}${authority.old_root()}`)).toMatchObject({
      status: 'active',
    })
  })
  test('whose authorities sign each other is read to its end', () => {
    const circle = authority.circle(key, NAMES)
    const made = upload(circle.leaf + circle.authorities)
    expect([made.status, made.warning]).toEqual(['active', expect.stringContaining('may be missing')])
  })
  test('is shown for its names whatever case they are written in', async () => {
    world.domain('shop.example.com', { ssl_mode: 'custom' })
    expect(upload(authority.leaf(key, ['SHOP.Example.com'])).names).toEqual(['shop.example.com'])
    await world.idle()
    expect([...world.ingress.certificates.values()].map(({ names }) => names)).toEqual([['shop.example.com']])
  })
  test('is shown rather than a self-signed one that lives longer, while the domain waits for an authority', async () => {
    world.acme.failAll(new AcmeError('unreachable', 'The certificate authority is down.'))
    const domain = world.domain('shop.example.com', { ssl_mode: 'self_signed' })
    world.certificates.follow(domain.id)
    await world.idle()
    const made = upload(`${leaf}${authority.intermediate}`)
    domain.ssl_mode = 'acme'
    world.certificates.follow(domain.id)
    await world.idle()
    expect([...world.ingress.certificates.keys()]).toEqual([made.id])
  })
  test('is shown from its upload on in the place of the one before: with a chain that was mended, and with a shorter life', async () => {
    const domain = world.domain('shop.example.com', { ssl_mode: 'custom' })
    const shown = async (made: { id: string }) => {
      world.certificates.follow(domain.id)
      await world.idle()
      expect([...world.ingress.certificates.keys()]).toEqual([made.id])
    }
    await shown(upload(leaf))
    await shown(upload(`${leaf}${authority.intermediate}`))
    await shown(upload(`${authority.leaf(key, ['shop.example.com'], { days: 30 })}${authority.intermediate}`))
  })
  test('for a domain must cover its names', () => {
    const domain = world.domain('shop.example.org', { ssl_mode: 'custom' })
    expect(() => upload(leaf, key, { domain_id: domain.id })).toThrow(
      'certificate: is not valid for shop.example.org; it names shop.example.com, *.example.com.',
    )
    const covered = world.domain('a.example.com', { ssl_mode: 'custom' })
    expect(upload(leaf, key, { domain_id: covered.id }).status).toBe('active')
  })

  const refused: [what: string, make: () => [certificate: string, key: string], sentence: RegExp][] = [
    [
      'a key of another certificate',
      () => [leaf, authority.key()],
      /^private_key: belongs to none of the certificates/,
    ],
    [
      'an encrypted key',
      () => [leaf, authority.encrypt(key)],
      /^private_key: is encrypted\. Decrypt it first/,
    ],
    ['two keys', () => [leaf, key + authority.key()], /^private_key: must hold exactly one/],
    ['a certificate in the place of the key', () => [leaf, leaf], /^private_key: must hold exactly one/],
    [
      'a damaged key',
      () => [leaf, key.replace(/\n[A-Za-z0-9+/]{20}/, '\nAAAAAAAAAAAAAAAAAAAA')],
      /^private_key: cannot be read/,
    ],
    ['the key among the certificates', () => [leaf + key, key], /^certificate: holds a private key/],
    [
      'no certificate',
      () => ['-----BEGIN NOTHING-----\nAAAA\n-----END NOTHING-----', key],
      /^certificate: holds no certificate/,
    ],
    [
      'a damaged certificate',
      () => [leaf.replace(/\n[A-Za-z0-9+/]{30}/, `\n${'A'.repeat(30)}`), key],
      /^certificate: cannot be read: block 1/,
    ],
    [
      'a certificate that ends in a month that there is not',
      () => [dated(leaf, { until: '991301000000Z' }), key],
      /^certificate: cannot be read: block 1/,
    ],
    [
      'a certificate that begins at no time',
      () => [dated(leaf, { from: 'once upon a Z' }), key],
      /^certificate: cannot be read: block 1/,
    ],
    [
      'more certificates than a chain has',
      () => [leaf + authority.intermediate.repeat(10), key],
      /^certificate: holds more than 10/,
    ],
    [
      'names in the common name only',
      () => [authority.leaf(key, [], { common_name: 'shop.example.com' }), key],
      /^certificate: names no host/,
    ],
    [
      'a key of 1024 bits',
      () => {
        const weak = authority.key('rsa:1024')
        return [authority.leaf(weak, NAMES), weak]
      },
      /^private_key: has fewer than 2048 bits/,
    ],
    [
      'an Ed25519 key, which browsers refuse',
      () => {
        const odd = authority.key('ed25519')
        return [authority.leaf(odd, NAMES), odd]
      },
      /^private_key: is of the kind ed25519/,
    ],
    [
      'a curve that no browser takes, with which every handshake would fail',
      () => {
        const odd = authority.key('ec:secp256k1')
        return [authority.leaf(odd, NAMES), odd]
      },
      /^private_key: is on the curve secp256k1/,
    ],
    [
      'a curve that some browsers do not take',
      () => {
        const odd = authority.key('ec:secp521r1')
        return [authority.leaf(odd, NAMES), odd]
      },
      /^private_key: is on the curve secp521r1/,
    ],
    [
      'a use other than that of a server',
      () => [authority.leaf(key, NAMES, { use: 'clientAuth' }), key],
      /^certificate: may not be used by a server/,
    ],
    [
      'a signature with SHA-1',
      () => [authority.leaf(key, NAMES, { digest: 'sha1' }), key],
      /^certificate: is signed with SHA-1/,
    ],
    [
      'a key of so many bits that each handshake would hold up the connections of everybody',
      () => [leaf, hugeKey()],
      /^private_key: has more than 4096 bits/,
    ],
    [
      'an authority whose key is so weak that the edge does not load the chain',
      () => [authority.under('rsa:1024', key, NAMES), key],
      /^certificate: cannot be served/,
    ],
    [
      'an authority whose signatures take very long to check',
      () => [authority.under('rsa:2048:18446744073709551629', key, NAMES), key],
      /^certificate: holds a key that takes too long to check/,
    ],
    [
      'an authority on a curve that hardly anybody uses',
      () => [authority.under('ec:brainpoolP512t1', key, NAMES), key],
      /^certificate: holds a key that takes too long to check/,
    ],
    [
      'more than the edge takes',
      () => {
        const many = Array.from({ length: 800 }, (_, n) => `host-${n}.example.com`)
        return [authority.leaf(key, many), key]
      },
      /^certificate: is longer than the edge takes/,
    ],
  ]
  test.each(refused)('is refused with %s', (_what, make, sentence) => {
    const [certificate, private_key] = make()
    expect(() => upload(certificate, private_key)).toThrow(
      expect.objectContaining({
        code: 'VALIDATION_ERROR',
        message: expect.stringMatching(sentence),
      }),
    )
    expect(world.kernel.db.sql('SELECT count(*) FROM certificates').pluck().get()).toBe(0)
  })
  test('is refused when it is over, or not valid yet', () => {
    world.kernel.clock.advance(91 * 86_400_000)
    expect(() => upload(leaf)).toThrow(/^certificate: expired on \d{4}-\d\d-\d\d\./)
    world.kernel.clock.set('2020-01-01T00:00:00.000Z')
    expect(() => upload(leaf)).toThrow(/^certificate: is not valid before/)
  })
  test('of a few weeks raises the notices of its last 21, 7 and 1 days, since nobody renews it by itself', async () => {
    upload(authority.leaf(key, NAMES, { days: 47 }))
    for (let day = 0; day < 48; day += 1) {
      world.kernel.clock.advance(86_400_000)
      await world.certificates.pass()
    }
    expect(world.events('certificate.expiring').map(({ payload }) => payload.days)).toEqual([21, 7, 1])
  })
  test('is not renewed here, and says why', () => {
    const { id } = upload(leaf)
    expect(() => world.certificates.renew(world.actor, id)).toThrow(
      expect.objectContaining({
        code: 'CONFLICT',
        message: expect.stringMatching(/uploaded certificate cannot be renewed/i),
      }),
    )
  })
})

describe('a signing request', () => {
  test('has the names and the key type that were asked for; its signed certificate is uploaded without the key', async () => {
    const domain = world.domain('shop.example.com', { ssl_mode: 'custom' })
    const { createAcme } = await import('#server/platform/acme/client')
    const real = createAcme({
      client: {
        send: async () => {
          throw new Error('no request is made')
        },
        close: async () => undefined,
      },
    })
    world.acme.createRequest = real.createRequest
    for (const key_type of ['ecdsa', 'rsa'] as const) {
      const request = await world.certificates.createCsr(world.actor, PROJECT, {
        names: ['shop.example.com', 'www.shop.example.com'],
        key_type,
      })
      expect(request).toMatchObject({
        source: 'csr',
        status: 'pending',
        key_type,
        csr: expect.stringContaining('BEGIN CERTIFICATE REQUEST'),
        not_after: null,
      })
      expect(() => upload(leaf, null, { csr_id: request.id })).toThrow(
        /^certificate: does not answer the signing request/,
      )
      expect(() => upload(leaf, key, { csr_id: request.id })).toThrow(
        /^private_key: cannot be given with csr_id/,
      )
      const made = upload(authority.sign(request.csr!), null, {
        csr_id: request.id,
        domain_id: domain.id,
      })
      await world.idle()
      expect(made).toMatchObject({
        id: request.id,
        status: 'active',
        key_type,
        names: ['shop.example.com', 'www.shop.example.com'],
      })
      expect([...world.ingress.certificates.values()].map(({ names }) => names)).toEqual([
        ['shop.example.com'],
      ])
    }
  })
  test('takes a further certificate for its key, when the first one comes to its end', async () => {
    world.domain('shop.example.com', { ssl_mode: 'custom' })
    const { createAcme } = await import('#server/platform/acme/client')
    world.acme.createRequest = createAcme({
      client: {
        send: async () => {
          throw new Error('no request is made')
        },
        close: async () => undefined,
      },
    }).createRequest
    const { id, csr } = await world.certificates.createCsr(world.actor, PROJECT, {
      names: ['shop.example.com'],
      key_type: 'ecdsa',
    })
    const first = upload(authority.sign(csr!), null, { csr_id: id })
    const second = upload(authority.sign(csr!), null, { csr_id: id })
    await world.idle()
    expect(second).toMatchObject({ id, status: 'active' })
    expect(second.serial_number).not.toBe(first.serial_number)
    expect(new X509Certificate(world.ingress.certificates.get(id)!.pem).serialNumber).toBe(
      second.serial_number,
    )
  })
  test('of another project, of another kind or of nobody is not found', async () => {
    const request = await world.certificates.createCsr(world.actor, 'prj_00000000000000000002', {
      names: ['shop.example.com'],
      key_type: 'ecdsa',
    })
    for (const csr_id of [request.id, upload(leaf).id, 'crt_nobody'])
      expect(() => upload(leaf, null, { csr_id })).toThrow(/There is no such signing request/)
  })
})

test('keys of signing requests are made one at a time, by turns of the projects: each holds a thread that all share', async () => {
  const { createKey } = world.acme
  const turns: string[] = []
  let running = 0
  world.acme.createKey = async (type) => {
    running += 1
    turns.push(`${running} ${type}`)
    const key = await createKey('ecdsa')
    running -= 1
    return key
  }
  const request = (project_id: string, key_type: 'rsa' | 'ecdsa') =>
    world.certificates.createCsr(world.actor, project_id, { names: ['shop.example.com'], key_type })
  await Promise.all([
    ...Array.from({ length: 5 }, () => request(PROJECT, 'rsa')),
    request('prj_00000000000000000002', 'ecdsa'),
  ])
  expect(turns).toEqual(['1 rsa', '1 ecdsa', '1 rsa', '1 rsa', '1 rsa', '1 rsa'])
})

test('a project has 500 certificates at most that somebody made by hand; one that its domain asks for is made all the same', async () => {
  const { db } = world.kernel
  const columns = (db.sql('PRAGMA table_info(certificates)').all() as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name !== 'id')
    .join(', ')
  const { id } = upload(leaf)
  for (let n = 1; n < 500; n += 1)
    db.sql(
      `INSERT INTO certificates (id, ${columns}) SELECT ?, ${columns} FROM certificates WHERE id = ?`,
    ).run(`crt_${n}`, id)
  const full = expect.objectContaining({
    code: 'CONFLICT',
    message: expect.stringContaining('500 certificates at most'),
  })
  expect(() => upload(leaf)).toThrow(full)
  world.domain('shop.example.com')
  expect(() =>
    world.certificates.create(world.actor, PROJECT, { names: ['shop.example.com'], auto_renew: true }),
  ).toThrow(full)
  const request = { names: ['shop.example.com'], key_type: 'ecdsa' as const }
  await expect(world.certificates.createCsr(world.actor, PROJECT, request)).rejects.toThrow(full)
  const blog = world.domain('blog.example.org')
  world.certificates.follow(blog.id)
  await world.idle()
  expect([...world.ingress.certificates.values()].map(({ names }) => names)).toContainEqual([
    'blog.example.org',
  ])
  world.certificates.remove(world.actor, 'crt_1', false)
  expect(upload(leaf).status).toBe('active')
})

describe('deleting', () => {
  test('the only certificate of a domain is refused; one with a substitute falls back to it', async () => {
    world.domain('shop.example.com', { ssl_mode: 'custom' })
    const first = upload(leaf)
    await world.idle()
    expect(() => world.certificates.remove(world.actor, first.id, false)).toThrow(
      /only certificate of shop\.example\.com/,
    )
    const second = upload(authority.leaf(key, NAMES, { days: 200 }))
    await world.idle()
    expect(world.certificates.get(second.id).hostnames).toEqual(['shop.example.com'])
    world.certificates.remove(world.actor, second.id, false)
    await world.idle()
    expect([...world.ingress.certificates.keys()]).toEqual([first.id])
    expect(() => world.certificates.get(second.id)).toThrow(/There is no such certificate/)
  })
  test('with revocation makes room for a new one for the same names at once, before the authority has heard of it', async () => {
    world.domain('shop.example.com')
    const issue = () =>
      world.certificates.create(world.actor, PROJECT, {
        names: ['shop.example.com'],
        auto_renew: true,
      })
    const { id } = issue()
    await world.idle()
    world.certificates.remove(world.actor, id, true)
    const again = issue()
    await world.idle()
    expect([...world.ingress.certificates.keys()]).toEqual([again.id])
  })
  test('with revocation takes it off the edge and erases its key at once, and tells the authority', async () => {
    world.domain('shop.example.com')
    const { id } = world.certificates.create(world.actor, PROJECT, {
      names: ['shop.example.com'],
      auto_renew: true,
    })
    await world.idle()
    world.certificates.remove(world.actor, id, true)
    expect(world.kernel.db.sql('SELECT status, private_key FROM certificates').get()).toEqual({
      status: 'revoked',
      private_key: null,
    })
    await world.idle()
    expect([
      world.acme.revoked.length,
      world.ingress.certificates.size,
      world.kernel.db.sql('SELECT count(*) FROM certificates').pluck().get(),
    ]).toEqual([1, 0, 0])
    expect(world.events('certificate.revoked')).toHaveLength(1)
  })
})
