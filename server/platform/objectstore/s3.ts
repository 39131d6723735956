import * as v from 'valibot'
import { SECRET } from '#server/kernel/schemas'
import { OutboundError } from '#server/platform/outbound/outbound'
import {
  checkKey,
  type ObjectStore,
  type ObjectStoreDescriptor,
  ObjectStoreError,
  type PutOptions,
  type StoredObject,
} from './objectstore.ts'
import { cutParts, type Part } from './parts.ts'
import type { S3Config, S3Request } from './s3-requests.ts'
import { codeIn, createS3Requests, decodeXml, type SendS3, tagOf, textOf } from './s3-requests.ts'

const line = (max: number) =>
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(max),
    v.regex(/^[\x21-\x7e]+$/, 'must be printable text without spaces.'),
  )
const Config = v.strictObject({
  endpoint: v.pipe(
    v.string(),
    v.maxLength(300),
    v.check(
      (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && !new URL(text).search,
      'must be an address such as https://s3.eu-central-1.amazonaws.com.',
    ),
    v.description('Address of the service. Plain HTTP only for hosts that the operator listed.'),
    v.examples(['https://s3.eu-central-1.amazonaws.com']),
  ),
  region: v.optional(v.pipe(line(64), v.description('Region that requests are signed for.')), 'us-east-1'),
  bucket: v.pipe(
    v.string(),
    v.regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket.'),
    v.description('Bucket that exists already.'),
  ),
  prefix: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(200),
      v.regex(
        /^$|^[A-Za-z0-9_][A-Za-z0-9._-]*(\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/,
        'must be a path such as backups/prod.',
      ),
      v.description('Folder within the bucket.'),
    ),
    '',
  ),
  path_style: v.optional(
    v.pipe(
      v.boolean(),
      v.description('Whether the bucket stands in the path instead of in front of the host name.'),
    ),
    true,
  ),
  access_key_id: v.pipe(line(200), v.description('Public half of the access key.')),
  secret_access_key: v.pipe(line(500), v.description('Secret half of the access key. Never shown.'), SECRET),
})

/** Services want parts of one size, at most 10,000 of them: an object may have 160 GB. */
const PART_BYTES = 16 * 1024 ** 2
/** An object that is read is asked for again so often when the connection breaks before it brought this much. */
const READ_ATTEMPTS = 5
const PROGRESS_BYTES = 1024 ** 2

/** Uploads of one object that are ended at once: a service may name 100,000, and take half a minute for each. */
const MOST_UPLOADS = 20

/**
 * Ends uploads of an object that a process began which was killed: their parts take room, and are in no list of
 * objects. Not every service tells of them, nor lets every key ask.
 */
async function endUploads(send: SendS3, key: string, limits: { signal?: AbortSignal }): Promise<void> {
  try {
    const query = { uploads: '', prefix: key }
    const xml = await textOf(await send({ method: 'GET', key: '', query, ...limits }))
    let ended = 0
    for (const entry of entriesOf(xml, 'Upload')) {
      if (ended === MOST_UPLOADS) break
      const uploadId = decodeXml(tagOf(entry, 'UploadId') ?? '')
      if (uploadId === '' || decodeXml(tagOf(entry, 'Key') ?? '') !== key) continue
      await (await send({ method: 'DELETE', key, query: { uploadId }, ...limits })).discard()
      ended += 1
    }
  } catch (error) {
    if (!(error instanceof ObjectStoreError)) throw error
  }
}

/** Uploads in parts: each is sent again by itself when its connection breaks. */
async function putParts(
  send: SendS3,
  key: string,
  source: AsyncIterable<Uint8Array>,
  { signal, onProgress }: PutOptions,
): Promise<{ size_bytes: number }> {
  const parts = cutParts(source, PART_BYTES)
  const limits = signal ? { signal } : {}
  const first = await parts.next()
  if (first.done) throw new Error('A stream has at least one part.')
  if (first.value.is_last) {
    await send({ method: 'PUT', key, body: first.value.bytes, ...limits })
    onProgress?.(first.value.bytes.byteLength)
    return { size_bytes: first.value.bytes.byteLength }
  }
  await endUploads(send, key, limits)
  const started = await send({ method: 'POST', key, query: { uploads: '' }, ...limits })
  const uploadId = tagOf(await textOf(started), 'UploadId')
  if (!uploadId) throw new ObjectStoreError('failed', 'The service did not begin the upload.')
  const tags: string[] = []
  let size_bytes = 0
  // One part travels while the next one is filled.
  let travelling: Promise<void> = Promise.resolve()
  const upload = async (number: number, bytes: Uint8Array) => {
    const query = { partNumber: String(number), uploadId }
    const answer = await send({ method: 'PUT', key, query, body: bytes, ...limits })
    await answer.discard()
    tags[number - 1] = answer.headers.etag ?? ''
    size_bytes += bytes.byteLength
    onProgress?.(size_bytes)
  }
  try {
    let number = 0
    for (let part: IteratorResult<Part, unknown> = first; !part.done; part = await parts.next()) {
      number += 1
      await travelling
      travelling = upload(number, part.value.bytes)
      travelling.catch(() => {})
    }
    await travelling
    const body = Buffer.from(
      `<CompleteMultipartUpload>${tags
        .map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
        .join('')}</CompleteMultipartUpload>`,
    )
    const done = await send({ method: 'POST', key, query: { uploadId }, body, ...limits })
    // Services begin this answer with 200 before they know how it ends.
    const failure = codeIn(await textOf(done))
    if (failure) throw new ObjectStoreError('failed', `The service could not join the parts (${failure}).`)
    return { size_bytes }
  } catch (error) {
    await travelling.catch(() => {})
    await parts.return(undefined).catch(() => {})
    await send({ method: 'DELETE', key, query: { uploadId } }).then(
      (answer) => answer.discard(),
      () => {},
    )
    throw error
  }
}

/** Reads an object; when the connection breaks, asks for the rest, and only of the same object. */
async function* read(send: SendS3, request: S3Request, start: number, end?: number) {
  let from = start
  let etag: string | undefined
  for (let attempt = 1; ; attempt += 1) {
    const answer = await send({
      ...request,
      headers: {
        ...(from > 0 || end !== undefined ? { range: `bytes=${from}-${end ?? ''}` } : {}),
        ...(etag ? { 'if-match': etag } : {}),
      },
    })
    // The whole in the place of its rest would be taken for more of it.
    if (from > 0 && answer.status !== 206) {
      await answer.discard()
      throw new ObjectStoreError('failed', 'The service sends no parts of an object, only the whole.')
    }
    etag ??= answer.headers.etag
    const began = from
    try {
      for await (const chunk of answer.body) {
        yield chunk
        from += chunk.byteLength
      }
      return
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error
      if (error.code === 'aborted') throw new ObjectStoreError('aborted', 'The work was cancelled.')
      if (from - began >= PROGRESS_BYTES) attempt = 0
      if (attempt >= READ_ATTEMPTS) throw new ObjectStoreError('unreachable', error.message, { cause: error })
    }
  }
}

/** The texts of the entries of a list. Looked for one after the other: what is never closed is no entry. */
function* entriesOf(xml: string, name: string): Generator<string> {
  let at = 0
  for (;;) {
    const start = xml.indexOf(`<${name}>`, at)
    const end = start < 0 ? -1 : xml.indexOf(`</${name}>`, start)
    if (end < 0) return
    yield xml.slice(start, end)
    at = end
  }
}

export function createS3Store(send: SendS3, prefix: string): ObjectStore {
  const nameOf = (key: string) => {
    checkKey(key)
    return prefix ? `${prefix}/${key}` : key
  }
  return {
    put: async (key, source, options = {}) => putParts(send, nameOf(key), source, options),
    async *get(key, range, signal) {
      const request = { method: 'GET', key: nameOf(key), ...(signal ? { signal } : {}) } as const
      yield* read(send, request, range?.start ?? 0, range?.end)
    },
    async stat(key, signal) {
      try {
        const request = { method: 'HEAD', key: nameOf(key) } as const
        const answer = await send({ ...request, ...(signal ? { signal } : {}) })
        await answer.discard()
        return { key, size_bytes: Number(answer.headers['content-length'] ?? 0) }
      } catch (error) {
        if (error instanceof ObjectStoreError && error.code === 'not_found') return undefined
        throw error
      }
    },
    async *list(start, signal): AsyncGenerator<StoredObject> {
      const root = prefix ? `${prefix}/` : ''
      for (let token: string | undefined, more = true; more; more = token !== undefined) {
        const query = {
          'list-type': '2',
          prefix: `${root}${start}`,
          ...(token ? { 'continuation-token': token } : {}),
        }
        const request = { method: 'GET', key: '', query } as const
        const xml = await textOf(await send({ ...request, ...(signal ? { signal } : {}) }))
        for (const entry of entriesOf(xml, 'Contents'))
          yield {
            key: decodeXml(tagOf(entry, 'Key') ?? '').slice(root.length),
            size_bytes: Number(tagOf(entry, 'Size') ?? 0),
          }
        const next = tagOf(xml, 'NextContinuationToken')
        const following = next === undefined ? undefined : decodeXml(next)
        if (following !== undefined && following === token)
          throw new ObjectStoreError('failed', 'The list of the bucket goes round in a circle.')
        token = following
      }
    },
    async delete(key, signal) {
      try {
        const request = { method: 'DELETE', key: nameOf(key) } as const
        const answer = await send({ ...request, ...(signal ? { signal } : {}) })
        await answer.discard()
      } catch (error) {
        if (!(error instanceof ObjectStoreError) || error.code !== 'not_found') throw error
      }
      await endUploads(send, nameOf(key), signal ? { signal } : {})
    },
    close: async () => {},
  }
}

export const s3: ObjectStoreDescriptor = {
  kind: 's3',
  title: 'S3-compatible object storage',
  config: Config,
  secrets: ['secret_access_key'],
  location: (config) => {
    const { endpoint, bucket, prefix } = config as unknown as S3Config
    return `${new URL(endpoint).host}/${bucket}${prefix ? `/${prefix}` : ''}`
  },
  create: (config, { client }) => {
    const typed = config as unknown as S3Config
    return createS3Store(createS3Requests(client, typed), typed.prefix)
  },
}
