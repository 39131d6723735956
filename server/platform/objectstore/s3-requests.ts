import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import type { Answer, GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { missing, ObjectStoreError } from './objectstore.ts'

export interface S3Config {
  endpoint: string
  region: string
  bucket: string
  prefix: string
  path_style: boolean
  access_key_id: string
  secret_access_key: string
}
export interface S3Request {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  /** Key of the object within the bucket; empty for the bucket itself. */
  key: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: Uint8Array
  signal?: AbortSignal
}

/** A request is tried so often in all, each time after a longer pause. */
const ATTEMPTS = 5
const FIRST_PAUSE_MS = 200
/** A question, for which people may wait; a part of 16 MiB over a slow line; the whole of an object that is read. */
const TIMEOUT_MS = { ask: 30_000, send: 10 * 60_000, read: 24 * 3_600_000 }
function timeoutOf({ method, key }: S3Request): number {
  if (method === 'GET' && key !== '') return TIMEOUT_MS.read
  // Joining the parts of a large object takes minutes, too.
  return method === 'PUT' || method === 'POST' ? TIMEOUT_MS.send : TIMEOUT_MS.ask
}

/** What stays for longer than anybody would wait: a full store, and what the service does not know how to do. */
const STAYS: readonly number[] = [501, 507]
const isPassing = (status: number) =>
  (status >= 500 && !STAYS.includes(status)) || status === 429 || status === 408

/** A list of a thousand keys, each as long as it may be, has less. */
const MOST_ANSWER_BYTES = 8 * 1024 ** 2
/** What a refusal may say; its code stands at its beginning. */
const MOST_REFUSAL_BYTES = 65_536

/** The text between the first pair of tags of this name. */
export const tagOf = (xml: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]

/** The code of an error, where it is one: it becomes part of a sentence. */
export const codeIn = (xml: string): string | undefined =>
  /<Code>([A-Za-z0-9._-]{1,64})<\/Code>/.exec(xml)?.[1]

export const decodeXml = (text: string): string =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#34;', '"')
    .replaceAll('&amp;', '&')

/** The whole of a short answer. */
export async function textOf(answer: Answer): Promise<string> {
  try {
    return await answer.text()
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    if (error.code === 'aborted') throw new ObjectStoreError('aborted', 'The work was cancelled.')
    throw new ObjectStoreError('failed', error.message, { cause: error })
  }
}

/** As much of an answer as is looked at; the rest is not waited for. */
async function beginningOf(answer: Answer): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of answer.body) {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size >= MOST_REFUSAL_BYTES) break
    }
  } catch {
    // The status says enough.
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** What the store refused, in one sentence; its own message may name the key id and is left out. */
async function refusal(answer: Answer, host: string): Promise<ObjectStoreError> {
  const code = codeIn(await beginningOf(answer)) ?? `HTTP ${answer.status}`
  if (code === 'NoSuchBucket')
    return new ObjectStoreError('denied', `${host} has no such bucket. Create it, or correct its name.`)
  if (answer.status === 404) return missing()
  if (answer.status === 507 || /Full|QuotaExceeded|InsufficientStorage/.test(code))
    return new ObjectStoreError('full', `${host} has no space left (${code}). Free space, then try again.`)
  if (answer.status === 401 || answer.status === 403)
    return new ObjectStoreError(
      'denied',
      `${host} refused the access key (${code}). Check key, secret, region and the rights on the bucket.`,
    )
  if (answer.status === 301 || answer.status === 307)
    return new ObjectStoreError('denied', `${host} keeps the bucket in another region (${code}).`)
  return new ObjectStoreError('failed', `${host} answered with an error (${code}).`)
}

/** Signed requests to one bucket, each tried again while the failure may pass. */
export function createS3Requests(client: GuardedClient, config: S3Config) {
  const base = new URL(config.endpoint)
  const { host } = base
  if (!config.path_style) base.hostname = `${config.bucket}.${base.hostname}`
  const addressOf = ({ key, query = {} }: S3Request): string => {
    const path = [config.path_style ? config.bucket : '', key].filter(Boolean).map(encodePath).join('/')
    const url = new URL(`${base.pathname.replace(/\/$/, '')}/${path}`, base)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return url.href
  }
  async function once(request: S3Request): Promise<Answer> {
    const body = request.body ?? new Uint8Array()
    const signed = await new AwsV4Signer({
      method: request.method,
      url: addressOf(request),
      headers: {
        ...request.headers,
        'x-amz-content-sha256': createHash('sha256').update(body).digest('hex'),
      },
      accessKeyId: config.access_key_id,
      secretAccessKey: config.secret_access_key,
      service: 's3',
      region: config.region,
    }).sign()
    return client.send(signed.url.href, {
      method: request.method,
      headers: Object.fromEntries(signed.headers),
      ...(request.body ? { body: request.body } : {}),
      ...(request.signal ? { signal: request.signal } : {}),
      timeout_ms: timeoutOf(request),
      // Only an object that is read as it comes has no limit.
      max_bytes:
        request.method === 'GET' && request.key !== '' ? Number.POSITIVE_INFINITY : MOST_ANSWER_BYTES,
    })
  }
  /** An answer of 2xx; throws ObjectStoreError for any other. */
  return async function send(request: S3Request): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await once(request)
        if (answer.status < 300) return answer
        const error = await refusal(answer, host)
        if (!isPassing(answer.status) || attempt === ATTEMPTS) throw error
      } catch (error) {
        if (!(error instanceof OutboundError)) throw error
        if (error.code === 'aborted') throw new ObjectStoreError('aborted', 'The work was cancelled.')
        if (['forbidden', 'invalid', 'tls', 'unknown_host'].includes(error.code) || attempt === ATTEMPTS)
          throw new ObjectStoreError('unreachable', error.message, { cause: error })
      }
      await delay(FIRST_PAUSE_MS * 2 ** attempt, undefined, { signal: request.signal }).catch(() => {})
    }
  }
}
export type SendS3 = ReturnType<typeof createS3Requests>

/** Every segment encoded as the signature wants it. */
const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/')
