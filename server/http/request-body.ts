import type { H3Event } from 'h3'
import { ApiError } from '#server/kernel/errors'
import type { AnyEndpoint } from './definition.ts'
import { isMediaType, isUtf8, MAX_BODY_BYTES, MAX_PUBLIC_BODY_BYTES, parseJson, readBytes } from './input.ts'
import { mutates } from './request.ts'

/** A JSON body as it was sent, and what it says. */
export interface RawBody {
  bytes: Buffer
  value: unknown
}

/** Where JSON and a file are both taken, the type of the body tells which it is. */
export function sendsFile({ upload, body }: AnyEndpoint, event: H3Event): boolean {
  if (!upload) return false
  return !body || isMediaType(event.node.req.headers['content-type'], upload.media_types)
}

/**
 * The JSON body of a request; undefined for a file, which is read later, and where none is taken.
 * @param share what its sender may hold in memory until they are answered.
 */
export async function bodyOf(
  definition: AnyEndpoint,
  event: H3Event,
  share: { hold(bytes: number): void },
): Promise<RawBody | undefined> {
  const request = event.node.req
  const { headers } = request
  if (definition.upload && sendsFile(definition, event)) {
    const { media_types, any_type } = definition.upload
    if (!any_type && !isMediaType(headers['content-type'], media_types))
      throw new ApiError('UNSUPPORTED_MEDIA_TYPE', `Send the body as ${definition.upload.media_types[0]}.`)
    if (Number(headers['content-length'] ?? 0) > definition.upload.max_bytes)
      throw new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${definition.upload.max_bytes} bytes.`)
    return undefined
  }
  if (!mutates(request.method ?? 'GET')) return undefined
  const empty = !headers['transfer-encoding'] && Number(headers['content-length'] ?? 0) === 0
  if (empty) return { bytes: Buffer.alloc(0), value: definition.body ? {} : undefined }
  if (!isMediaType(headers['content-type'], ['application/json']))
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.')
  if (!isUtf8(headers['content-type']))
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Send the body in UTF-8; JSON has no other character set.')
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Send the body without a Content-Encoding.')
  const limit = definition.access === 'public' ? MAX_PUBLIC_BODY_BYTES : MAX_BODY_BYTES
  const bytes = await readBytes(request, limit, { hold: share.hold })
  return { bytes, value: parseJson(bytes) }
}
