import type { Portreeve } from './portreeve.ts'

/** Somebody who is logged in to the built server, with what their client keeps. */
export interface Person {
  id: string
  email: string
  password: string
  token: string
  /** Value of the session cookie. */
  cookie: string
  /** Headers of a program with the token. */
  bearer: Record<string, string>
  /** Headers of a browser on the server's own page. */
  browser: Record<string, string>
}
/** One answer: its status, its text and the text's JSON. */
export interface Reply<T = any> {
  status: number
  text: string
  body: T
  headers: Headers
}

/**
 * Who the cast knows; project roles are those in the default project. The server must be started with
 * `CAST_ENVIRONMENT`.
 */
const ROLES = {
  owner: { role: 'member', project: 'owner' },
  developer: { role: 'member', project: 'developer' },
  viewer: { role: 'member', project: 'viewer' },
  outsider: { role: 'member', project: undefined },
  reader: { role: 'viewer', project: undefined },
} as const
export type Part = keyof typeof ROLES
/** Lets each login come from an address of its own, past the limit of one peer. */
export const CAST_ENVIRONMENT = { PORTREEVE_TRUSTED_PROXIES: '127.0.0.1' }

let peers = 0
/** An address that nobody has used yet. */
export const newPeer = (): Record<string, string> => {
  peers += 1
  return { 'x-forwarded-for': `198.18.${peers >> 8}.${peers & 255}` }
}

/**
 * A call as exactly these headers say: as nobody without any. On a connection of its own, since a kept one
 * may be closed while a test is busy.
 */
export async function send<T = any>(
  portreeve: Portreeve,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply<T>> {
  const content = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const response = await fetch(`${portreeve.url}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      connection: 'close',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...content,
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: response.headers.get('content-type')?.startsWith('application/json')
      ? JSON.parse(text)
      : (text as T),
  }
}

/** Logs somebody in. */
export async function enter(
  portreeve: Portreeve,
  email: string,
  password: string,
  totp_code?: string,
): Promise<Person> {
  const login = await send(
    portreeve,
    'POST',
    '/api/auth/login',
    { email, password, ...(totp_code ? { totp_code } : {}) },
    newPeer(),
  )
  if (login.status !== 200) throw new Error(`The login of ${email} answered ${login.status} ${login.text}`)
  const { token, user } = login.body.data
  const cookie = /(?:^|, )session=([^;]*)/.exec(login.headers.get('set-cookie') ?? '')?.[1] ?? ''
  const csrf = await send(portreeve, 'GET', '/api/auth/csrf-token', undefined, {
    cookie: `session=${cookie}`,
  })
  return {
    id: user.id,
    email,
    password,
    token,
    cookie,
    bearer: { authorization: `Bearer ${token}` },
    browser: {
      cookie: `session=${cookie}`,
      'x-csrf-token': csrf.body.data?.csrf_token ?? '',
      origin: portreeve.url,
    },
  }
}

/** Invites somebody as the administrator and lets them join and log in. */
export async function join(
  portreeve: Portreeve,
  name: string,
  part: Part,
  password = `${name} likes violet harbours`,
): Promise<Person & { invitation: string }> {
  const { role, project } = ROLES[part]
  const [project_id] = (await portreeve.call('GET', '/api/projects')).body.data.map(
    ({ id }: { id: string }) => id,
  )
  const email = `${name}@example.test`
  const invited = await portreeve.call('POST', '/api/team/members', {
    email,
    role,
    projects: project ? [{ project_id, role: project }] : [],
  })
  if (invited.status !== 201) throw new Error(`${name} could not be invited: ${JSON.stringify(invited.body)}`)
  const invitation: string = invited.body.data.link.split('#')[1]
  const joined = await send(
    portreeve,
    'POST',
    '/api/auth/invitations/accept',
    { token: invitation, name, password },
    newPeer(),
  )
  if (joined.status !== 201) throw new Error(`${name} could not join: ${joined.status} ${joined.text}`)
  return { ...(await enter(portreeve, email, password)), invitation }
}

/** One person of every part. */
export async function joinAll(portreeve: Portreeve): Promise<Record<Part, Person & { invitation: string }>> {
  const cast = {} as Record<Part, Person & { invitation: string }>
  for (const part of Object.keys(ROLES) as Part[]) cast[part] = await join(portreeve, part, part)
  return cast
}
