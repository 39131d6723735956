import type { SendOptions } from '#server/platform/outbound/client'
import type { OutboundErrorCode } from '#server/platform/outbound/outbound'
import type { AcmeAccount, AcmeErrorCode, AcmeSession } from './acme.ts'

/** What the server asks of the thread that speaks ACME. */
export interface Asked {
  what: 'register' | 'createRequest' | keyof AcmeSession
  /** The account that a call of a session is on behalf of. */
  account?: AcmeAccount
  /** All arguments but the signal. */
  args: unknown[]
}

/** An answer of the guarded client, which stays with the server. */
export interface Carried {
  status: number
  headers: Record<string, string>
  url: string
  text: string
}
export type CarryOptions = Pick<SendOptions, 'method' | 'headers' | 'body' | 'timeout_ms'>

export type ToThread =
  | ({ kind: 'ask'; id: number } & Asked)
  | { kind: 'abort'; id: number }
  | { kind: 'carried'; request: number; answer: Carried }
  | { kind: 'lost'; request: number; code: OutboundErrorCode; message: string }

export type FromThread =
  | { kind: 'answer'; id: number; result: unknown }
  | {
      kind: 'refusal'
      id: number
      code: AcmeErrorCode
      message: string
      retry_after_s: number | undefined
    }
  /** A request of the call `id`, which the server sends through the guarded client. */
  | { kind: 'carry'; id: number; request: number; url: string; options: CarryOptions }
