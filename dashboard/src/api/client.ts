import createClient, { type Middleware } from 'openapi-fetch'
import { ref } from 'vue'
import { messages } from '@/lib/messages'
import { askAgain, newKey, send } from './again.ts'
import { ApiFault } from './fault.ts'
import type { components, paths } from './generated/schema.d.ts'

export type Schemas = components['schemas']

/** Whether the session ended while pages were open. Nothing is thrown away; a dialog asks to log in again. */
export const session_ended = ref(false)
/** Whether the generated first password is still in use; nothing else works until it is changed. */
export const password_due = ref(false)

let csrf_token: Promise<string> | undefined
/** Forgets the token: it belongs to a session that is no more. */
export function forgetCsrf(): void {
  csrf_token = undefined
}

async function fetchCsrf(): Promise<string> {
  const headers = { accept: 'application/json' }
  const answer = await askAgain(() => fetch('/api/auth/csrf-token', { headers }))
  const body = (await answer.json()) as { data?: { csrf_token: string } }
  return body.data?.csrf_token ?? ''
}

/** The token of this session, asked for once; again when it could not be had. */
export function csrfToken(): Promise<string> {
  csrf_token ??= fetchCsrf().catch((error: unknown) => {
    forgetCsrf()
    throw error
  })
  return csrf_token
}

const changes = (method: string) => !['GET', 'HEAD'].includes(method)
/** Whether the whole body is at hand to be sent again; files are not. */
const isShort = ({ headers }: Request) =>
  /^application\/json/.test(headers.get('content-type') ?? 'application/json')
/** Calls that come before there is a session. */
const open = /\/api\/auth\/(login|password\/(forgot|reset)|invitations\/accept)$/

const session: Middleware = {
  async onRequest({ request, schemaPath }) {
    if (!changes(request.method) || open.test(schemaPath)) return undefined
    request.headers.set('X-CSRF-Token', await csrfToken())
    // What makes something must not make it twice; to change or delete it twice is to do it once.
    if (request.method === 'POST' && isShort(request)) request.headers.set('Idempotency-Key', newKey())
    return request
  },
  async onResponse({ response, schemaPath }) {
    if (response.ok) return undefined
    const body: unknown = await response
      .clone()
      .json()
      .catch(() => undefined)
    const fault = new ApiFault(response.status, body)
    if (fault.code === 'UNAUTHORIZED' && !open.test(schemaPath)) session_ended.value = true
    if (fault.code === 'PASSWORD_CHANGE_REQUIRED') password_due.value = true
    if (fault.code === 'CSRF_INVALID') forgetCsrf()
    throw fault
  },
  onError({ error }) {
    if (error instanceof DOMException && error.name === 'AbortError') return error
    return error instanceof ApiFault ? error : new ApiFault(0, undefined)
  },
}

/** The API, typed by its own description. A refusal is thrown as `ApiFault`. */
export const api = createClient<paths, 'application/json'>({
  baseUrl: '',
  credentials: 'same-origin',
  fetch: send,
})
api.use(session)

/** What an answer carries, once it is known not to be a refusal. */
export async function answerOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  try {
    return (await call).data as T
  } catch (error) {
    // It was no JSON, which a browser tells in words for programmers.
    if (error instanceof SyntaxError)
      throw new ApiFault(0, { error: { code: 'NOT_OURS', message: messages.not_ours } })
    throw error
  }
}
