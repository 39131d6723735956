import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Accounts, createAccounts } from '#server/certificates/accounts'
import type { AcmeRules } from '#server/certificates/ports'
import { AcmeError } from '#server/platform/acme/acme'
import { createFakeAcme, type FakeAcme } from '#server/platform/acme/fake'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

let kernel: TestKernel
let acme: FakeAcme
let accounts: Accounts
let rules: AcmeRules
beforeEach(() => {
  kernel = createTestKernel()
  acme = createFakeAcme({ now: kernel.clock.now })
  rules = {
    directory_url: 'https://ca.test/directory',
    email: 'ada@example.com',
    eab: null,
    key_type: 'ecdsa',
    challenge: 'http-01',
  }
  accounts = createAccounts({
    db: kernel.db,
    clock: kernel.clock,
    secrets: kernel.secrets,
    acme,
    rules: () => rules,
  })
})
afterEach(() => kernel.dispose())
const rows = () =>
  kernel.db.sql('SELECT directory_url, account_url, private_key, next_key FROM acme_accounts').all() as {
    directory_url: string
    account_url: string | null
    private_key: string
    next_key: string | null
  }[]
const works = async () => (await (await accounts.session()).order(['shop.example.com'])).status

describe('the account at an authority', () => {
  test('is made with the first order, once for each directory, and kept', async () => {
    expect([await works(), await works()]).toEqual(['pending', 'pending'])
    rules = { ...rules, directory_url: 'https://other.test/directory' }
    expect(await works()).toBe('pending')
    rules = { ...rules, directory_url: 'https://ca.test/directory' }
    expect(await works()).toBe('pending')
    expect([acme.calls.filter((call) => call === 'register').length, rows().length]).toEqual([2, 2])
  })
  test('hears of another e-mail or binding, with the same key', async () => {
    await works()
    const [before] = rows()
    rules = { ...rules, email: 'new@example.com', eab: { kid: 'k', hmac_key: 'aGVsbG8' } }
    await works()
    expect(acme.calls.filter((call) => call === 'register')).toHaveLength(2)
    expect(rows()[0]!.account_url).toBe(before!.account_url)
  })
  test('that could not be registered is registered at the next time, with the key that was stored', async () => {
    acme.failNext('register', new AcmeError('unreachable', 'down'))
    await expect(works()).rejects.toThrow('down')
    const stored = rows()[0]!.private_key
    expect(await works()).toBe('pending')
    expect(rows().map(({ private_key }) => private_key)).toEqual([stored])
  })
  test('gets a new key, and the old one is worth nothing', async () => {
    await works()
    const [before] = rows()
    await accounts.rotateKey()
    const [after] = rows()
    expect([after!.account_url, after!.next_key, after!.private_key === before!.private_key]).toEqual([
      before!.account_url,
      null,
      false,
    ])
    expect(await works()).toBe('pending')
  })
  test.each([
    ['before the authority heard of it', false],
    ['after the authority took it', true],
  ])('stays the same one after a crash during the change of its key %s', async (_when, taken) => {
    await works()
    const original = acme.session
    acme.session = (account) => ({
      ...original(account),
      async rollKey(next) {
        if (taken) await original(account).rollKey(next)
        throw new Error('the process ended')
      },
    })
    await expect(accounts.rotateKey()).rejects.toThrow('the process ended')
    acme.session = original
    expect(rows()[0]!.next_key).not.toBeNull()
    const url = rows()[0]!.account_url
    expect(await works()).toBe('pending')
    expect([rows()[0]!.next_key, rows()[0]!.account_url]).toEqual([null, url])
    expect([...acme.accounts]).toEqual([url])
  })
  test('stays the same one when the authority refuses the change of its key', async () => {
    await works()
    const [before] = rows()
    acme.failNext('rollKey', new AcmeError('refused', 'not today'))
    await expect(accounts.rotateKey()).rejects.toThrow('not today')
    expect(await works()).toBe('pending')
    expect(rows()).toEqual([before])
    expect([...acme.accounts]).toEqual([before!.account_url])
  })
  test('is due for a new key after a year', async () => {
    expect(accounts.isRotationDue()).toBe(false)
    await works()
    kernel.clock.advance(364 * 86_400_000)
    expect(accounts.isRotationDue()).toBe(false)
    kernel.clock.advance(2 * 86_400_000)
    expect(accounts.isRotationDue()).toBe(true)
    await accounts.rotateKey()
    expect(accounts.isRotationDue()).toBe(false)
  })
})
