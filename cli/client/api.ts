import type { FetchResponse, RequestBodyOption } from 'openapi-fetch'
import type { components, paths } from '#api-schema'
import { own } from '#server/kernel/own'
import { type Answer, askOnce } from '../http.ts'
import { CommandError } from '../terminal.ts'
import type { Context } from './contexts.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'

export type Schemas = components['schemas']

type Verb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type PathOf<V extends Verb> = {
  [P in Extract<keyof paths, string>]: paths[P] extends { [M in Lowercase<V>]: object } ? P : never
}[Extract<keyof paths, string>]
/** Headers and cookies are the client's own. */
type ParamsOf<T> = T extends { parameters: infer P } ? Omit<P, 'header' | 'cookie'> : object
/** What a call may be given: that which it does, and nothing else that `fetch` knows. */
type InitOf<T> = (object extends ParamsOf<T> ? { params?: ParamsOf<T> } : { params: ParamsOf<T> }) &
  RequestBodyOption<T> & {
    /** Gives the call up. */
    signal?: AbortSignal
  }
type OperationOf<V extends Verb, P extends PathOf<V>> = paths[P] extends {
  [M in Lowercase<V>]: infer T extends Record<string, unknown>
}
  ? T
  : never
type Call<V extends Verb> = <P extends PathOf<V>>(
  path: P,
  ...init: object extends InitOf<OperationOf<V, P>>
    ? [InitOf<OperationOf<V, P>>?]
    : [InitOf<OperationOf<V, P>>]
) => Promise<Pick<FetchResponse<OperationOf<V, P>, object, `${string}/${string}`>, 'data'>>
/** Of the stand-in for types that are not generated yet: what may be given is known all the same. */
type UntypedCall = (
  path: string,
  init?: { params?: object; body?: unknown; signal?: AbortSignal },
) => Promise<{ data?: paths }>
export type Api = { [V in Verb]: 0 extends 1 & paths ? UntypedCall : Call<V> }

/** What the server says against a call. Scripts branch on the exit code, or on `code` of `--json`. */
export class ApiFault extends CommandError {
  readonly status: number
  readonly code: string
  /** What is wrong with each field, or what speaks against the call. */
  readonly details: readonly Detail[]
  constructor(status: number, code: string, message: string, details: readonly Detail[] = []) {
    super(message, exitCodeOf(status))
    this.status = status
    this.code = code
    this.details = details
  }
}
interface Detail {
  path: string
  message: string
}

function errorIn(text: string): { code?: string; message?: string; details?: Detail[] } {
  try {
    const { code, message, details } = (JSON.parse(text) as { error: Record<string, unknown> }).error
    // Another service has errors of another shape.
    return {
      ...(typeof code === 'string' ? { code } : {}),
      ...(typeof message === 'string' ? { message } : {}),
      ...(Array.isArray(details) ? { details: details as Detail[] } : {}),
    }
  } catch {
    return {}
  }
}

/** What an answer without words of its own means: it may lead elsewhere, where credentials are not taken. */
function wordsOf(status: number, location: string | null | undefined, base: string): string {
  const to = location && status >= 300 && status < 400 ? URL.parse(location, base) : null
  if (!to || !['http:', 'https:'].includes(to.protocol)) return `The server answered ${status}.`
  if (to.origin !== new URL(base).origin) return `The server answers at ${to.origin}: log in there.`
  return `The server answered ${status} and leads to ${to.origin}${to.pathname}.`
}

interface Refusal {
  status: number
  text: string
  location?: string | null
}
/** What a server that does not know a caller means, by what the call showed it. */
function strangerWords(name: string, { api_key, token, url }: Context): string {
  const is_given = name === 'environment'
  if (api_key !== undefined)
    return `${is_given ? 'The key in PORTREEVE_API_KEY' : `The API key of ${name}`} is not taken: it is wrong, has ended or was revoked. ${is_given ? 'Make another one in the dashboard.' : `Give another one: portreeve login ${url} --api-key-stdin`}`
  if (!is_given) return `The login of ${name} has ended. Log in again: portreeve login.`
  return token === undefined
    ? 'PORTREEVE_URL is set, so PORTREEVE_API_KEY has to be, too.'
    : 'The token in PORTREEVE_TOKEN is not taken: it has ended, or is of another server.'
}

function faultOf({ status, text, location }: Refusal, name: string, context: Context): ApiFault {
  const { url } = context
  const { code = 'UNKNOWN', message = wordsOf(status, location, url), details } = errorIn(text)
  if (code === 'UNAUTHORIZED') return new ApiFault(401, code, strangerWords(name, context))
  if (code === 'PASSWORD_CHANGE_REQUIRED')
    return new ApiFault(403, code, `${message} portreeve login does that.`)
  return new ApiFault(status, code, message, details)
}

/** All characters of which our keys and tokens are made. */
const CREDENTIAL = /^[\w.-]+$/

/** Headers that say who calls. */
export function credentialHeaders({ token, api_key }: Context): Record<string, string> {
  const given = api_key ?? token
  if (given && !CREDENTIAL.test(given))
    throw new CommandError(
      `The ${api_key === undefined ? 'token' : 'API key'} has a character that none of ours has, such as a blank or a quote: give it as it was shown, and nothing beside it.`,
      EXIT.USAGE,
    )
  if (api_key) return { 'X-API-Key': api_key }
  return token ? { Authorization: `Bearer ${token}` } : {}
}

/** Why a server could not be asked, in the words of the system below. */
function reasonOf(error: unknown): string {
  const { cause, message, code } = error as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException }
  return code ?? cause?.code ?? cause?.message ?? message
}

const unreachable = (url: string, error: unknown) =>
  new CommandError(`${url} does not answer (${reasonOf(error)}).`, EXIT.UNREACHABLE, { cause: error })

/** Asks a server with a body that streams, and makes an error of every answer that is none. */
export async function ask(name: string, context: Context, request: Request): Promise<Response> {
  // A redirect is not followed: to another host, `fetch` takes the header of an API key along.
  const response = await fetch(request, { redirect: 'manual' }).catch((error: unknown) => {
    throw unreachable(context.url, error)
  })
  if (response.ok) return response
  const { status, headers } = response
  throw faultOf({ status, text: await response.text(), location: headers.get('location') }, name, context)
}

/** What a call of the API takes, as `Api` has it for each path. */
interface Given {
  params?: { path?: Record<string, unknown>; query?: Record<string, unknown> }
  body?: unknown
  signal?: AbortSignal
}

function addressOf(path: string, { path: values = {}, query = {} }: NonNullable<Given['params']>): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) =>
    encodeURIComponent(String(own(values, name))),
  )
  const pairs: [string, string][] = Object.entries(query).flatMap(([name, value]) =>
    [value]
      .flat()
      .flatMap((one) => (one === undefined || one === null ? [] : [[name, String(one)] as [string, string]])),
  )
  return pairs.length === 0 ? filled : `${filled}?${String(new URLSearchParams(pairs))}`
}

/** What an answer holds. A page is none: something else has the address, or stands before the server. */
function contentOf({ type, text }: Answer, { url }: Context): unknown {
  try {
    if (type.includes('json')) return JSON.parse(text) as unknown
  } catch (cause) {
    throw new CommandError(`What ${url} answered is damaged. Try again.`, EXIT.FAILED, { cause })
  }
  if (!type.includes('html')) return text
  throw new CommandError(
    `${url} is no Portreeve, or something stands before it: it answered with a page.`,
    EXIT.FAILED,
  )
}

const METHODS: readonly Verb[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** The API of a server, typed by its own description. Refusals are thrown. */
export function createApi(name: string, context: Context): Api {
  const verb =
    (method: string) =>
    async (path: string, given: Given = {}) => {
      const has_body = given.body !== undefined
      const answer: Answer = await askOnce({
        method,
        url: `${context.url}${addressOf(path, given.params ?? {})}`,
        headers: {
          ...credentialHeaders(context),
          accept: 'application/json, text/plain',
          ...(has_body ? { 'content-type': 'application/json' } : {}),
        },
        ...(has_body ? { body: JSON.stringify(given.body) } : {}),
        ...(given.signal ? { signal: given.signal } : {}),
      }).catch((error: unknown) => {
        throw unreachable(context.url, error)
      })
      if (answer.status < 200 || answer.status > 299) throw faultOf(answer, name, context)
      return { data: contentOf(answer, context) }
    }
  return Object.fromEntries(METHODS.map((method) => [method, verb(method)])) as unknown as Api
}

/** What an answer holds. openapi-fetch types it as absent after a refusal, which is thrown here. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T
}
