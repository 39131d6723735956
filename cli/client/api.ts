import createClient, { type Client, type Middleware } from 'openapi-fetch'
import type { components, paths } from '#api-schema'
import { CommandError } from '../terminal.ts'
import type { Context } from './contexts.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'

export type Schemas = components['schemas']
export type Api = Client<paths>

/** What the server says against a call. Scripts branch on the exit code, or on `code` of `--json`. */
export class ApiFault extends CommandError {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message, exitCodeOf(status))
    this.status = status
    this.code = code
  }
}

async function faultOf(response: Response, name: string): Promise<ApiFault> {
  const body = (await response.json().catch(() => ({}))) as { error?: { code?: string; message?: string } }
  const { code = 'UNKNOWN', message = `The server answered ${response.status}.` } = body.error ?? {}
  if (code === 'UNAUTHORIZED')
    return new ApiFault(401, code, `The login of ${name} has ended. Log in again: portreeve login.`)
  if (code === 'PASSWORD_CHANGE_REQUIRED')
    return new ApiFault(403, code, `${message} portreeve login does that.`)
  return new ApiFault(response.status, code, message)
}

/** Headers that say who calls. */
export function credentialHeaders({ token, api_key }: Context): Record<string, string> {
  if (api_key) return { 'X-API-Key': api_key }
  return token ? { Authorization: `Bearer ${token}` } : {}
}

/** Why a server could not be asked, in the words of the system below. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: NodeJS.ErrnoException & { errors?: Error[] } }
  return cause?.code ?? cause?.errors?.[0]?.message ?? cause?.message ?? message
}

const unreachable = (url: string, error: unknown) =>
  new CommandError(`${url} does not answer (${reasonOf(error)}).`, EXIT.UNREACHABLE, { cause: error })

/** Asks a server, and makes an error of every answer that is none. */
export async function ask(name: string, { url }: Context, request: Request): Promise<Response> {
  const response = await fetch(request).catch((error: unknown) => {
    throw unreachable(url, error)
  })
  if (!response.ok) throw await faultOf(response, name)
  return response
}

/** The API of a server, typed by its own description. Refusals are thrown. */
export function createApi(name: string, context: Context): Api {
  const api = createClient<paths>({
    baseUrl: context.url,
    headers: credentialHeaders(context),
    fetch: (request) => ask(name, context, request),
  })
  const asText: Middleware = {
    onRequest({ request }) {
      request.headers.set('accept', 'application/json, text/plain')
      return request
    },
  }
  api.use(asText)
  return api
}

/** What an answer holds. openapi-fetch types it as absent after a refusal, which is thrown here. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T
}
