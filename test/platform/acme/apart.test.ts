import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ACME_WORKER, createAcmeApart } from '#server/platform/acme/apart'
import type { Answer, GuardedClient, SendOptions } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { ROOT } from '#test/support/routes'
import { bundleThread } from '../../../cli/build-module.ts'

const folder = mkdtempSync(join(tmpdir(), 'portreeve-acme-'))
const thread = join(folder, ACME_WORKER)
beforeAll(() => bundleThread(ROOT, ACME_WORKER, thread), 60_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const DIRECTORY = 'https://ca.test/dir'
type Reply = Partial<Pick<Answer, 'status' | 'headers'>> & { text?: string }

/** A guarded client that asks nobody, and what was sent through it. */
function clientThat(answer: (url: string, options: SendOptions) => Reply | Promise<Reply>) {
  const sent: string[] = []
  const client: GuardedClient = {
    async send(url, options = {}) {
      sent.push(`${options.method ?? 'GET'} ${url}`)
      const { status = 200, headers = {}, text = '' } = await answer(url, options)
      const none = async () => new Uint8Array()
      return {
        status,
        headers: { 'replay-nonce': 'nonce', ...headers },
        url,
        body: { async *[Symbol.asyncIterator]() {} },
        bytes: none,
        text: async () => text,
        discard: async () => undefined,
      }
    },
    close: async () => undefined,
  }
  return { client, sent }
}
const directory = JSON.stringify({
  newNonce: 'https://ca.test/nonce',
  newAccount: 'https://ca.test/account',
  newOrder: 'https://ca.test/order',
})
async function register(client: GuardedClient, signal?: AbortSignal, file = thread) {
  const acme = createAcmeApart({ client, file, idle_ms: 50 })
  const key = await acme.createKey('ecdsa')
  return acme.register({ directory_url: DIRECTORY, key, email: null, eab: null }, signal)
}

describe('certificates that are asked for in a thread of their own', () => {
  it('are requested through the guarded client of the server, and by nobody else', async () => {
    const { client, sent } = clientThat((url) =>
      url === DIRECTORY
        ? { text: directory }
        : { status: 201, headers: { location: 'https://ca.test/account/1' }, text: '{}' },
    )
    await expect(register(client)).resolves.toEqual({ account_url: 'https://ca.test/account/1' })
    expect(sent).toEqual([`GET ${DIRECTORY}`, 'HEAD https://ca.test/nonce', 'POST https://ca.test/account'])
  })
  it('fail with what the authority said and when it may be asked again', async () => {
    const { client } = clientThat((url) =>
      url === DIRECTORY
        ? { text: directory }
        : {
            status: url.endsWith('account') ? 429 : 200,
            headers: { 'retry-after': '7200' },
            text: '{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many"}',
          },
    )
    await expect(register(client)).rejects.toMatchObject({
      name: 'AcmeError',
      code: 'rate_limited',
      retry_after_s: 7200,
      message: expect.stringContaining('too many'),
    })
  })
  it('fail with what the outbound policy refused', async () => {
    const { client } = clientThat(() => {
      throw new OutboundError('forbidden', 'ca.test leads to an address that is not public.')
    })
    await expect(register(client)).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('ca.test leads to an address that is not public.'),
    })
  })
  it('are given up when the job is cancelled, also in the middle of a request', async () => {
    const controller = new AbortController()
    const { client } = clientThat(
      (_url, { signal }) =>
        new Promise((_resolve, reject) => {
          const cancelled = () => reject(new OutboundError('aborted', 'It was cancelled.'))
          signal!.addEventListener('abort', cancelled)
          if (signal!.aborted) cancelled()
          controller.abort()
        }),
    )
    await expect(register(client, controller.signal)).rejects.toMatchObject({ name: 'AcmeError' })
    await expect(register(client, controller.signal)).rejects.toMatchObject({ name: 'AcmeError' })
  })
  it('go on with the new key of an account, also when the thread has just ended', async () => {
    const keys: unknown[] = []
    const { client } = clientThat((url, { body }) => {
      if (url === DIRECTORY)
        return { text: JSON.stringify({ ...JSON.parse(directory), keyChange: 'https://ca.test/key' }) }
      if (body) keys.push(JSON.parse(Buffer.from(JSON.parse(String(body)).protected, 'base64url').toString()))
      return url.endsWith('order')
        ? {
            status: 201,
            headers: { location: 'https://ca.test/order/1' },
            text: '{"status":"pending","identifiers":[],"authorizations":[],"finalize":"https://ca.test/f"}',
          }
        : { text: '{"status":"pending","identifiers":[],"authorizations":[]}' }
    })
    const acme = createAcmeApart({ client, file: thread, idle_ms: 1 })
    const session = acme.session({
      directory_url: DIRECTORY,
      key: await acme.createKey('ecdsa'),
      account_url: 'https://ca.test/account/1',
    })
    await session.rollKey(await acme.createKey('ecdsa'))
    await expect(session.order(['shop.test'])).resolves.toMatchObject({ status: 'pending' })
    expect(keys).toHaveLength(3)
    const key = await acme.createKey('ecdsa')
    await expect(acme.createRequest(key, ['shop.test'])).resolves.toContain('BEGIN CERTIFICATE REQUEST')
  })
  it('say so when the thread does not last', async () => {
    const broken = join(folder, 'broken.mjs')
    writeFileSync(broken, 'throw new Error("no")')
    const { client } = clientThat(() => ({}))
    await expect(register(client, undefined, broken)).rejects.toMatchObject({
      code: 'unreachable',
      message: 'The thread that speaks to certificate authorities ended.',
    })
  })
})
