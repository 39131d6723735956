import { payloadOf } from './body.ts'
import { checked } from './forges/checked.ts'
import { type ForgeEvent, other } from './forges/forge.ts'
import { findForge } from './forges/forges.ts'

/** A delivery of a forge whose signature was found to fit. */
export interface Delivered {
  /** The forge, by the hook. */
  forge: string
  /** Kind of the event, as the forge names it. */
  name: string
  content_type: string
  body: Uint8Array
}

/** What a delivery tells, as far as it may be acted on and kept. */
export function readEvent({ forge, name, content_type, body }: Delivered): ForgeEvent {
  const { buffer, byteOffset, byteLength } = body
  const payload = payloadOf(Buffer.from(buffer, byteOffset, byteLength), content_type)
  return payload === undefined
    ? other('The body is no JSON that can be read.')
    : checked(findForge(forge)!.parse(name, payload))
}
