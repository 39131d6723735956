import { generateKeyPair } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Authorization, Client } from 'acme-client'
import type { GuardedClient } from '#server/platform/outbound/client'
import {
  type Acme,
  type AcmeAccount,
  type AcmeAuthorization,
  AcmeError,
  type AcmeOrder,
  type AcmeSession,
  type KeyType,
} from './acme.ts'
import { loadAcme, oneLine, problemText, travel } from './transport.ts'

export interface AcmeOptions {
  /** Sends to where the outbound policy allows, and nowhere else. */
  client: GuardedClient
  /** Waits between two looks at an order. */
  poll_ms?: number
  /** How long an authority may take to decide. */
  patience_ms?: number
}
/** What the protocol's objects hold beyond the types of the client. */
interface WithError {
  error?: unknown
}

const POLL_MS = 1000
const SLOWEST_POLL_MS = 5000
const PATIENCE_MS = 120_000
const RSA_BITS = 2048
const generate = promisify(generateKeyPair)

/** A private key for a certificate or an account; small and fast by default. */
export async function createKey(type: KeyType): Promise<string> {
  const { privateKey } =
    type === 'rsa'
      ? await generate('rsa', { modulusLength: RSA_BITS })
      : await generate('ec', { namedCurve: 'prime256v1' })
  return String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
}

async function createRequest(key: string, names: readonly string[]): Promise<string> {
  const { crypto } = await loadAcme()
  const [, request] = await crypto.createCsr({ altNames: [...names] }, key)
  return request.toString()
}

/** Characters of base64url, as many as the edge takes. */
const TOKEN = /^[A-Za-z0-9_-]{1,256}$/

async function toAuthorization(
  client: Client,
  { identifier, wildcard, status, challenges }: Authorization,
): Promise<AcmeAuthorization> {
  const usable = challenges.filter(({ type }) => type === 'http-01' || type === 'dns-01')
  // Else it would be the edge that refuses it, which looks as if that were broken.
  if (!usable.every(({ token }) => typeof token === 'string' && TOKEN.test(token)))
    throw new AcmeError('unreachable', 'The certificate authority sent a challenge that has no valid token.')
  return {
    hostname: identifier.value,
    wildcard: wildcard === true,
    status,
    challenges: await Promise.all(
      usable.map(async (challenge) => ({
        type: challenge.type as 'http-01' | 'dns-01',
        url: challenge.url,
        token: challenge.token,
        status: challenge.status,
        answer: await client.getChallengeKeyAuthorization(challenge),
      })),
    ),
  }
}

/** As many as a certificate has names, of which a wildcard and its name are two. */
const MOST_AUTHORIZATIONS = 100

/** The authorizations of an order, all asked for at once. */
async function authorizationsOf(client: Client, order: { authorizations?: unknown[] }) {
  if ((order.authorizations ?? []).length > MOST_AUTHORIZATIONS)
    throw new AcmeError(
      'unreachable',
      `The certificate authority wants more than ${MOST_AUTHORIZATIONS} proofs for one order.`,
    )
  return client.getAuthorizations(order as never)
}

/** Why an order became invalid: the reason of the first challenge that failed, else the order's own. */
async function reasonOf(client: Client, order: { authorizations?: unknown[] } & WithError): Promise<string> {
  const authorizations = await authorizationsOf(client, order)
  for (const { identifier, challenges } of authorizations) {
    const failed = (challenges as WithError[]).find(({ error }) => error !== undefined)
    if (failed) return `${identifier.value}: ${problemText(failed.error).text}`
  }
  return problemText(order.error).text || 'no reason was given'
}

function createSession(options: AcmeOptions, account: AcmeAccount): AcmeSession {
  const { client: guarded, poll_ms = POLL_MS, patience_ms = PATIENCE_MS } = options
  let { key } = account
  const call = <T>(signal: AbortSignal | undefined, work: (client: Client) => Promise<T>): Promise<T> =>
    travel(guarded, signal, (acme) =>
      work(
        new acme.Client({
          directoryUrl: account.directory_url,
          accountKey: key,
          accountUrl: account.account_url,
        }),
      ),
    )
  const readOrder = async (client: Client, url: string): Promise<AcmeOrder> => {
    const order = await client.getOrder({ url } as never)
    const authorizations = await authorizationsOf(client, order)
    return {
      url,
      status: order.status,
      authorizations: await Promise.all(authorizations.map((one) => toAuthorization(client, one))),
    }
  }
  return {
    order: (names, signal) =>
      call(signal, async (client) => {
        const { url } = await client.createOrder({
          identifiers: names.map((value) => ({ type: 'dns', value })),
        })
        return readOrder(client, url)
      }),
    read: (url, signal) => call(signal, (client) => readOrder(client, url)),
    accept: (challenge, signal) =>
      call(signal, async (client) => void (await client.completeChallenge(challenge as never))),
    settle: (url, desired, signal) =>
      call(signal, async (client) => {
        const started_ms = performance.now()
        for (let wait_ms = poll_ms; ; wait_ms = Math.min(SLOWEST_POLL_MS, wait_ms * 1.5)) {
          const order = await client.getOrder({ url } as never)
          if (
            order.status === 'valid' ||
            (desired === 'ready' && (order.status === 'ready' || order.status === 'processing'))
          )
            return
          if (order.status === 'invalid')
            throw new AcmeError(
              'refused',
              `The certificate authority refused: ${await reasonOf(client, order)}`,
            )
          if (performance.now() - started_ms + wait_ms > patience_ms)
            throw new AcmeError(
              'pending',
              `The certificate authority did not decide within ${Math.round(patience_ms / 1000)} seconds.`,
            )
          await delay(wait_ms, undefined, signal ? { signal } : {})
        }
      }),
    finalise: (url, certificate_key, names, signal) =>
      call(signal, async (client) => {
        const order = await client.getOrder({ url } as never)
        if (order.status === 'processing' || order.status === 'valid') return
        await client.finalizeOrder(order, await createRequest(certificate_key, names))
      }),
    download: (url, signal) =>
      call(signal, async (client) => {
        const chain: unknown = await client.getCertificate(await client.getOrder({ url } as never))
        if (typeof chain !== 'string')
          throw new AcmeError(
            'unreachable',
            'The certificate authority sent something that is no certificate.',
          )
        return chain
      }),
    revoke: (certificate, signal) =>
      call(signal, async (client) => void (await client.revokeCertificate(certificate))).catch(
        (error: unknown) => {
          if (
            !(error instanceof AcmeError && /already.*revoked|alreadyRevoked/i.test(oneLine(error.message)))
          )
            throw error
        },
      ),
    rollKey: (next, signal) =>
      call(signal, async (client) => {
        await client.updateAccountKey(next)
        key = next
      }),
  }
}

/** Authorities on the internet, and in private networks that the operator listed. */
export function createAcme(options: AcmeOptions): Acme {
  return {
    createKey,
    createRequest,
    register: ({ directory_url, key, email, eab, only_existing }, signal) =>
      travel(options.client, signal, async (acme) => {
        const client = new acme.Client({
          directoryUrl: directory_url,
          accountKey: key,
          ...(eab ? { externalAccountBinding: { kid: eab.kid, hmacKey: eab.hmac_key } } : {}),
        })
        // An account that exists is changed by this, and authorities refuse a change of nothing: without an
        // address the list is empty, not absent.
        await client.createAccount({
          termsOfServiceAgreed: true,
          contact: email ? [`mailto:${email}`] : [],
          ...(only_existing ? { onlyReturnExisting: true } : {}),
        })
        return { account_url: client.getAccountUrl() }
      }),
    session: (account) => createSession(options, account),
  }
}
