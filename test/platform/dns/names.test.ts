import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createNames, type NamesOptions } from '#server/platform/dns/names'
import { startDnsServer, type TestDnsServer } from '#test/support/dns-server'
import { poll } from '#test/support/poll'

const directory = mkdtempSync(join(tmpdir(), 'portreeve-names-'))
const hosts_path = join(directory, 'hosts')
const resolver_path = join(directory, 'resolv.conf')
let server: TestDnsServer
let other: TestDnsServer
afterAll(() => rmSync(directory, { recursive: true }))
// Anew for each test: a question of the one before may still be on its way.
beforeEach(async () => {
  server = await startDnsServer()
  other = await startDnsServer()
  writeFileSync(hosts_path, '')
  writeFileSync(resolver_path, 'search nowhere.test\n')
  return async () => {
    await server.close()
    await other.close()
  }
})

const names = (options: NamesOptions = {}) =>
  createNames({ servers: [server.address], hosts_path, resolver_path, timeout_ms: 15_000, ...options })
const find = async (name: string, options?: NamesOptions) =>
  (await names(options)(name)).map(({ address }) => address).sort()
/** Questions that arrive while something is done. */
async function questions(work: () => Promise<unknown>): Promise<string[]> {
  const before = server.asked.length
  await work()
  return [...new Set(server.asked.slice(before).map((asked) => asked.split(' ')[0]!))]
}

describe('a name', () => {
  it('is found at once beside any number of names whose server is silent', async () => {
    const look = names()
    server.set('innocent.example.com', { A: ['192.0.2.1'] })
    const slow = Array.from({ length: 20 }, (_, at) => `slow${at}.example.com`)
    for (const name of slow) server.fail(name, 'timeout')
    const leaving = new AbortController()
    const hanging = Promise.allSettled(slow.map((name) => look(name, leaving.signal)))
    await poll(() => slow.every((name) => server.asked.includes(`${name} A`)))
    expect(await look('innocent.example.com')).toEqual([{ address: '192.0.2.1', family: 4 }])
    leaving.abort()
    // They were waited for until here: each ended with its caller, and not before.
    for (const one of await hanging) expect(one).toMatchObject({ reason: { name: 'AbortError' } })
  })
  it('has the addresses of both families, through aliases', async () => {
    server.set('www.example.com', { CNAME: ['edge.example.net'] })
    server.set('edge.example.net', { A: ['192.0.2.20'], AAAA: ['2001:db8::20'] })
    expect(await find('www.example.com')).toEqual(['192.0.2.20', '2001:db8::20'])
  })
  it('may have addresses of IPv6 alone', async () => {
    server.set('six.example.com', { AAAA: ['2001:db8::6'] })
    expect(await names()('six.example.com')).toEqual([{ address: '2001:db8::6', family: 6 }])
  })
  it.each([
    ['AAAA', '192.0.2.30'],
    ['A', '2001:db8::30'],
  ])('is found when its server never answers for %s', async (silent, expected) => {
    server.set('half.example.com', { A: ['192.0.2.30'], AAAA: ['2001:db8::30'] })
    server.unanswered.add(`half.example.com ${silent}`)
    expect(await find('half.example.com', { other_family_ms: 20 })).toEqual([expected])
  })
  it('that is not there is told from one that nobody answers for and one that DNS fails on', async () => {
    server.fail('silent.example.com', 'timeout')
    server.fail('broken.example.com', 'servfail')
    await expect(find('absent.example.com')).rejects.toMatchObject({ code: 'missing' })
    await expect(find('broken.example.com')).rejects.toMatchObject({ code: 'failed' })
    await expect(find('silent.example.com', { timeout_ms: 50, tries: 1 })).rejects.toMatchObject({
      code: 'timeout',
    })
  })
  it('is asked of the next server where one refuses or fails', async () => {
    server.fail('split.example.com', 'refused')
    other.set('split.example.com', { A: ['192.0.2.40'] })
    expect(await find('split.example.com', { servers: [server.address, other.address] })).toEqual([
      '192.0.2.40',
    ])
  })
  it('is not asked for once nobody wants to know it', async () => {
    const asked = await questions(() =>
      expect(names()('unwanted.example.com', AbortSignal.abort())).rejects.toMatchObject({
        name: 'AbortError',
      }),
    )
    const leaving = new AbortController()
    const look = names()('unwanted.example.com', leaving.signal)
    leaving.abort()
    await expect(look).rejects.toMatchObject({ name: 'AbortError' })
    await expect(find('wanted.example.com')).rejects.toMatchObject({ code: 'missing' })
    expect([...asked, ...server.asked].filter((question) => question.startsWith('unwanted'))).toEqual([])
  })
  it('goes on being looked up when another look-up is cancelled', async () => {
    const look = names({ timeout_ms: 200, tries: 5 })
    server.set('late.example.com', { A: ['192.0.2.50'] })
    server.unanswered.add('late.example.com A').add('late.example.com AAAA')
    server.fail('slow.example.com', 'timeout')
    const late = look('late.example.com')
    const leaving = new AbortController()
    const slow = look('slow.example.com', leaving.signal)
    leaving.abort()
    await expect(slow).rejects.toMatchObject({ name: 'AbortError' })
    server.unanswered.clear()
    expect(await late).toEqual([{ address: '192.0.2.50', family: 4 }])
  })
})

describe('the hosts file', () => {
  it('comes before DNS, which is asked for nothing that it holds', async () => {
    server.set('db.example.com', { A: ['192.0.2.60'], AAAA: ['2001:db8::60'] })
    writeFileSync(
      hosts_path,
      '# 10.9.9.9 db.example.com\n10.0.0.5\tDB.example.com db # 10.0.0.9\n10.0.0.6 db\nnonsense db\n::1 six\n',
    )
    const asked = await questions(async () => {
      expect(await find('db.example.com')).toEqual(['10.0.0.5'])
      expect(await find('db')).toEqual(['10.0.0.5', '10.0.0.6'])
      expect(await find('six')).toEqual(['::1'])
    })
    expect(asked).toEqual([])
  })
  it('is read again when it has changed, and may be missing', async () => {
    const look = names()
    writeFileSync(hosts_path, '10.0.0.5 moving.test\n')
    expect(await look('moving.test')).toEqual([{ address: '10.0.0.5', family: 4 }])
    writeFileSync(hosts_path, '10.0.0.17 moving.test\n')
    expect(await look('moving.test')).toEqual([{ address: '10.0.0.17', family: 4 }])
    rmSync(hosts_path)
    server.set('moving.test', { A: ['192.0.2.70'] })
    expect(await look('moving.test')).toEqual([{ address: '192.0.2.70', family: 4 }])
  })
  it('need not name localhost, of which no server is asked', async () => {
    const asked = await questions(async () => {
      expect(await find('localhost')).toEqual(['127.0.0.1', '::1'])
      expect(await find('shop.localhost')).toEqual(['127.0.0.1', '::1'])
    })
    expect(asked).toEqual([])
    writeFileSync(hosts_path, '127.0.0.1 localhost\n')
    expect(await find('localhost')).toEqual(['127.0.0.1'])
  })
})

describe('the search domains of resolv.conf', () => {
  it('are tried first for a name without dots, and last for one with them', async () => {
    writeFileSync(resolver_path, 'domain old.test\nsearch one.test two.test. # mine\n')
    server.set('printer.two.test', { A: ['10.0.0.7'] })
    server.set('a.b', { A: ['10.0.0.8'] })
    server.set('c.d.one.test', { A: ['10.0.0.9'] })
    expect(await questions(() => find('printer'))).toEqual(['printer.one.test', 'printer.two.test'])
    expect(await questions(() => find('a.b'))).toEqual(['a.b'])
    expect(await questions(() => find('c.d'))).toEqual(['c.d', 'c.d.one.test'])
  })
  it('are tried first for a name with fewer dots than ndots', async () => {
    writeFileSync(resolver_path, 'search svc.test\noptions timeout:1 ndots:2\n')
    server.set('api.web.svc.test', { A: ['10.0.0.10'] })
    expect(await questions(() => find('api.web'))).toEqual(['api.web.svc.test'])
  })
})
