import { own } from '#server/kernel/own'
import { AsyncLocalStorage } from 'node:async_hooks'
import * as v from 'valibot'
import { shaped } from '#server/kernel/json'
import type { Answer, GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { AcmeError, type AcmeErrorCode } from './acme.ts'

/**
 * The ACME client, loaded when the first certificate is asked for: it is large, and many installations never
 * ask.
 */
const load = async () => {
  const acme = await import('acme-client')
  // One for the whole module: what a request may do is found by the call that it belongs to, and one without
  // a call goes nowhere.
  acme.axios.defaults.adapter = carry as NonNullable<typeof acme.axios.defaults.adapter>
  return acme
}
export type AcmeModule = Awaited<ReturnType<typeof load>>
let loading: Promise<AcmeModule> | undefined
export const loadAcme = (): Promise<AcmeModule> => (loading ??= load())

const Problem = v.object({
  type: v.optional(v.string(), ''),
  detail: v.optional(v.string(), ''),
  subproblems: v.optional(
    v.array(
      v.object({
        detail: v.optional(v.string(), ''),
        identifier: v.optional(v.object({ value: v.string() })),
      }),
    ),
    [],
  ),
})
interface Refusal {
  status: number
  type: string
  text: string
  retry_after_s?: number
}
/**
 * One call of the ACME client: where its requests go through, and the last thing that the authority refused
 * in it.
 */
interface Trip {
  client: GuardedClient
  signal: AbortSignal | undefined
  refusal?: Refusal | undefined
}
interface Sent {
  url?: string
  method?: string
  data?: string
  headers?: Record<string, unknown>
}

const trips = new AsyncLocalStorage<Trip>()
const TIMEOUT_MS = 30_000
const MAX_TEXT = 600
const PREFIX = 'urn:ietf:params:acme:error:'

/** Authorities ask for a week at most; a certificate whose renewal waits for years is lost. */
const LONGEST_WAIT_S = 7 * 86_400

/** Seconds of a `Retry-After`, which is a number or a date; a week for any longer time. */
export function retryAfter(header: string | undefined, now_ms = Date.now()): number | undefined {
  if (!header) return undefined
  const seconds = /^\d{1,9}$/.test(header.trim())
    ? Number(header)
    : Math.ceil((Date.parse(header) - now_ms) / 1000)
  return Number.isNaN(seconds) ? undefined : Math.min(LONGEST_WAIT_S, Math.max(0, seconds))
}

/** One line of what somebody else wrote. */
export const oneLine = (text: string): string =>
  text
    .replace(/[\u0000-\u001f\u007f\u2028\u2029]+/g, ' ')
    .trim()
    .slice(0, MAX_TEXT)

/** The sentence of a problem document; the reasons of single names are added. */
export function problemText(problem: unknown): { type: string; text: string } {
  const told = shaped(Problem, problem)
  if (!told) return { type: '', text: '' }
  const { type, detail, subproblems } = told
  const more = subproblems
    .slice(0, 5)
    .map(({ detail: text, identifier }) => `${identifier ? `${identifier.value}: ` : ''}${text}`)
  return {
    type: type.startsWith(PREFIX) ? type.slice(PREFIX.length) : type,
    text: oneLine([detail, ...more].filter(Boolean).join('; ')),
  }
}

function refusalOf(answer: Answer, body: string): Refusal {
  let problem: unknown
  try {
    problem = JSON.parse(body)
  } catch {
    problem = undefined
  }
  const retry_after_s = retryAfter(answer.headers['retry-after'])
  return {
    status: answer.status,
    ...problemText(problem),
    ...(retry_after_s === undefined ? {} : { retry_after_s }),
  }
}

/** Sends one request of the ACME client through the guarded client of the call that it belongs to. */
async function carry(config: Sent): Promise<object> {
  const trip = trips.getStore()
  if (!trip) throw new Error('The ACME client sent a request outside of a call.')
  const answer = await trip.client.send(String(config.url), {
    method: String(config.method ?? 'get').toUpperCase() as 'GET',
    timeout_ms: TIMEOUT_MS,
    headers: { 'content-type': 'application/jose+json' },
    ...(config.data === undefined ? {} : { body: config.data }),
    ...(trip.signal ? { signal: trip.signal } : {}),
  })
  const data = await answer.text()
  if (answer.status >= 300 && answer.status < 400)
    throw new AcmeError(
      'unreachable',
      `The certificate authority at ${new URL(answer.url).host} redirected a request, which is not followed.`,
    )
  trip.refusal = answer.status >= 400 ? refusalOf(answer, data) : undefined
  return { status: answer.status, statusText: '', headers: answer.headers, data, config }
}

const CODES: Record<string, AcmeErrorCode> = {
  rateLimited: 'rate_limited',
  accountDoesNotExist: 'account',
  serverInternal: 'unreachable',
  badNonce: 'unreachable',
}

const SENTENCES: Partial<Record<AcmeErrorCode, string>> = {
  rate_limited: 'The certificate authority takes no more requests for now',
  unreachable: 'The certificate authority has a fault',
}

function codeOfStatus(status: number, type: string): AcmeErrorCode {
  if (status === 429) return 'rate_limited'
  return status >= 500 || !type ? 'unreachable' : 'refused'
}

function explain(error: unknown, { refusal }: Trip): AcmeError {
  if (error instanceof AcmeError) return error
  if (error instanceof OutboundError)
    return new AcmeError('unreachable', `The certificate authority cannot be reached: ${error.message}`, {
      cause: error,
    })
  if (!refusal)
    return new AcmeError(
      'unreachable',
      'The certificate authority did not answer as ACME asks for. Check the address of its directory.',
      { cause: error },
    )
  const { status, type, text, retry_after_s } = refusal
  const code = own(CODES, type) ?? codeOfStatus(status, type)
  const said = text ? `: ${text}` : ` (HTTP ${status}${type ? `, ${type}` : ''}).`
  const sentence = own(SENTENCES, code) ?? 'The certificate authority refused'
  return new AcmeError(code, `${sentence}${said}`, { cause: error, retry_after_s })
}

/**
 * Runs calls of the ACME client so that all their requests go through this guarded client. Throws AcmeError
 * only.
 */
export async function travel<T>(
  client: GuardedClient,
  signal: AbortSignal | undefined,
  work: (acme: AcmeModule) => Promise<T>,
): Promise<T> {
  const trip: Trip = { client, signal }
  try {
    const acme = await loadAcme()
    return await trips.run(trip, () => work(acme))
  } catch (error) {
    throw explain(error, trip)
  }
}
