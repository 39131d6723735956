import { CommandError } from '../terminal.ts'
import { type Api, ask, createApi, credentialHeaders, dataOf } from './api.ts'
import { type Context, findContext, readContexts, writeContexts } from './contexts.ts'
import { EXIT } from './exit-codes.ts'

/** A server that this call works with. */
export interface Session {
  name: string
  context: Context
  api: Api
  headers: Record<string, string>
  /** A call that the typed client cannot make: a body that streams. */
  send(path: string, init: RequestInit): Promise<Response>
}
/** Options that every verb of the client takes. */
export interface ClientOptions {
  context?: string
  json?: boolean
}

const DAY_MS = 86_400_000
/** A token lasts 30 days; with so much left of it a new one is fetched. */
const RENEW_BELOW_MS = 20 * DAY_MS

/** When a token ends; undefined for what is none of ours. */
function endOf(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      exp?: number
    }
    return exp === undefined ? undefined : exp * 1000
  } catch {
    return undefined
  }
}

/** Keeps people who use the client logged in. The old token goes on when no new one can be had. */
async function renewed(name: string, context: Context): Promise<Context> {
  const end = context.token === undefined ? undefined : endOf(context.token)
  if (end === undefined || name === 'environment') return context
  const left = end - Date.now()
  if (left <= 0 || left > RENEW_BELOW_MS) return context
  try {
    const answer = await dataOf(createApi(name, context).POST('/api/auth/refresh'))
    const fresh = { ...context, token: answer.data.token }
    const all = readContexts(process.env)
    writeContexts(process.env, { ...all, contexts: { ...all.contexts, [name]: fresh } })
    return fresh
  } catch {
    return context
  }
}

/** Opens the session of a context. */
export async function openSession({ context: named }: ClientOptions): Promise<Session> {
  const found = findContext(process.env, named)
  if (!found)
    throw new CommandError(
      'Nobody is logged in. Log in with: portreeve login <address of your server>',
      EXIT.DENIED,
    )
  return sessionOf(found.name, await renewed(found.name, found.context))
}

export function sessionOf(name: string, context: Context): Session {
  const headers = credentialHeaders(context)
  return {
    name,
    context,
    headers,
    api: createApi(name, context),
    send: (path, init) =>
      ask(
        name,
        context,
        new Request(`${context.url}${path}`, { ...init, headers: { ...headers, ...init.headers } }),
      ),
  }
}
