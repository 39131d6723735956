import { orThrow } from '#server/kernel/or-throw'
import { createHash } from 'node:crypto'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { type Acme, type AcmeChallenge, AcmeError, type AcmeOrder, type AcmeSession } from './acme.ts'
import { createKey } from './client.ts'

export type FakeAcmeCall = 'register' | keyof AcmeSession
/** An authority in memory, **for tests only**. Its certificates are real ones that vouch for themselves. */
export interface FakeAcme extends Acme {
  /** Every call that would be at least one request, in order. */
  readonly calls: readonly FakeAcmeCall[]
  /** URLs of the accounts that it knows. */
  readonly accounts: ReadonlySet<string>
  /** Chains that were revoked. */
  readonly revoked: readonly string[]
  /** The next call of this kind throws this. */
  failNext(call: FakeAcmeCall, error: AcmeError): void
  /** Every call throws this until it is called with nothing. */
  failAll(error?: AcmeError): void
  /**
   * Looks at the answer to a challenge: a text is the reason why it is refused. Default: takes everything.
   */
  evaluate: (hostname: string, challenge: AcmeChallenge) => string | undefined
  /** Lifetime of certificates. */
  valid_days: number
  /** Forgets every account, as after it was deactivated. */
  forgetAccounts(): void
}

interface FakeOrder extends AcmeOrder {
  names: readonly string[]
  chain?: string
  reason?: string
}

export function createFakeAcme(options: { now?: () => number } = {}): FakeAcme {
  const { now = () => Date.now() } = options
  const calls: FakeAcmeCall[] = []
  const accounts = new Map<string, string>()
  const orders = new Map<string, FakeOrder>()
  const revoked: string[] = []
  const planned = new Map<FakeAcmeCall, AcmeError>()
  let broken: AcmeError | undefined
  let count = 0
  const thumbprint = (key: string) => createHash('sha256').update(key).digest('base64url')

  function called(call: FakeAcmeCall): void {
    calls.push(call)
    const error = planned.get(call) ?? broken
    planned.delete(call)
    if (error) throw error
  }
  const find = (url: string): FakeOrder =>
    orThrow(
      orders.get(url),
      () => new AcmeError('refused', 'The certificate authority refused: no such order.'),
    )

  const fake: FakeAcme = {
    calls,
    revoked,
    createKey,
    valid_days: 90,
    get accounts() {
      return new Set(accounts.keys())
    },
    failNext: (call, error) => void planned.set(call, error),
    failAll(error) {
      broken = error
    },
    evaluate: () => undefined,
    forgetAccounts: () => accounts.clear(),
    createRequest: async (_key, names) =>
      `-----BEGIN CERTIFICATE REQUEST-----\n${Buffer.from(names.join(' ')).toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`,
    async register({ directory_url, key, only_existing }) {
      called('register')
      const known = [...accounts].find(([, value]) => value === key)?.[0]
      if (only_existing && known === undefined)
        throw new AcmeError('account', 'The certificate authority does not know this account.')
      const account_url = known ?? `${new URL(directory_url).origin}/account/${(count += 1)}`
      accounts.set(account_url, key)
      return { account_url }
    },
    session: ({ account_url, key: first_key }) => {
      let key = first_key
      const asked = (call: FakeAcmeCall) => {
        called(call)
        if (accounts.get(account_url) !== key)
          throw new AcmeError('account', 'The certificate authority does not know this account.')
      }
      return {
        async order(names) {
          asked('order')
          const url = `https://ca.test/order/${(count += 1)}`
          const order: FakeOrder = {
            url,
            status: 'pending',
            names,
            authorizations: names.map((name) => {
              const token = `token${(count += 1)}`
              const challenge = (type: 'http-01' | 'dns-01'): AcmeChallenge => ({
                type,
                token,
                url: `${url}/${token}/${type}`,
                status: 'pending',
                answer:
                  type === 'http-01'
                    ? `${token}.${thumbprint(key)}`
                    : thumbprint(`${token}.${thumbprint(key)}`),
              })
              const wildcard = name.startsWith('*.')
              return {
                hostname: name.replace(/^\*\./, ''),
                wildcard,
                status: 'pending',
                challenges: wildcard ? [challenge('dns-01')] : [challenge('http-01'), challenge('dns-01')],
              }
            }),
          }
          orders.set(url, order)
          return structuredClone(order)
        },
        async read(url) {
          asked('read')
          return structuredClone(find(url))
        },
        async accept(challenge) {
          asked('accept')
          const order = [...orders.values()].find(({ url }) => challenge.url.startsWith(`${url}/`))!
          const authorization = order.authorizations.find(({ challenges }) =>
            challenges.some(({ url }) => url === challenge.url),
          )!
          const reason = fake.evaluate(authorization.hostname, challenge)
          authorization.status = reason === undefined ? 'valid' : 'invalid'
          if (reason !== undefined)
            Object.assign(order, {
              status: 'invalid',
              reason: `${authorization.hostname}: ${reason}`,
            })
          else if (order.authorizations.every(({ status }) => status === 'valid')) order.status = 'ready'
        },
        async settle(url, desired) {
          asked('settle')
          const order = find(url)
          if (order.status === 'invalid')
            throw new AcmeError('refused', `The certificate authority refused: ${order.reason}`)
          if (order.status !== 'valid' && order.status !== desired)
            throw new AcmeError('pending', 'The certificate authority did not decide within 120 seconds.')
        },
        async finalise(url, certificate_key, names) {
          asked('finalise')
          const order = find(url)
          if (order.status === 'valid') return
          const pem = createSelfSigned(
            [...names] as [string, ...string[]],
            new Date(now()),
            fake.valid_days,
            certificate_key,
          )
          Object.assign(order, {
            status: 'valid',
            chain: pem.slice(0, pem.indexOf('-----BEGIN PRIVATE')),
          })
        },
        async download(url) {
          asked('download')
          return find(url).chain!
        },
        async revoke(certificate) {
          asked('revoke')
          revoked.push(certificate)
        },
        async rollKey(next) {
          asked('rollKey')
          accounts.set(account_url, next)
          key = next
        },
      }
    },
  }
  return fake
}
