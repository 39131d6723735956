import { createTestApi, type TestApi, type TestApiOptions } from '#test/support/api'
import type { Answer } from '#test/support/http-server'

/** A hash of about a millisecond: what the product's costs is known by a test of its own. */
export const CHEAP = { logN: 10, r: 8, p: 1 }
export const ADMIN = { email: 'root@example.test', password: 'violet harbour eleven kites' }

/** What a client keeps after a login. */
export interface LoggedIn {
  token: string
  cookie: string
  csrf: string
  bearer: Record<string, string>
  browser: Record<string, string>
}

/**
 * The product with a real administrator, who logs in for real. Each login comes from an address of its own,
 * past the limit of one peer.
 */
export async function createPeople(options: TestApiOptions = {}) {
  const api = await createTestApi({
    password_cost: CHEAP,
    ...options,
    environment: {
      PORTREEVE_ADMIN_EMAIL: ADMIN.email,
      PORTREEVE_ADMIN_PASSWORD: ADMIN.password,
      PORTREEVE_TRUSTED_PROXIES: '127.0.0.1',
      ...options.environment,
    },
  })
  api.kernel.db.sql('DELETE FROM users').run()
  await api.services.identity.ensureAdministrator()
  let peers = 0
  const login = (
    body: { email: string; password: string; totp_code?: string },
    address = `198.51.100.${(peers += 1)}`,
  ): Promise<Answer> =>
    api.request('POST', '/api/auth/login', { body, headers: { 'x-forwarded-for': address } })
  const enter = async (
    body: { email: string; password: string; totp_code?: string } = ADMIN,
  ): Promise<LoggedIn> => {
    const answer = await login(body)
    if (answer.status !== 200) throw new Error(`The login answered ${answer.status} ${answer.text}`)
    return loggedIn(api, answer)
  }
  return { ...api, login, enter }
}
export type People = Awaited<ReturnType<typeof createPeople>>

/** The value of the session cookie that an answer sets. */
export const cookieOf = (answer: Answer): string =>
  /(?:^|, )session=([^;]*)/.exec(answer.headers.get('set-cookie') ?? '')?.[1] ?? ''

async function loggedIn(api: TestApi, answer: Answer): Promise<LoggedIn> {
  const { token } = answer.body.data as { token: string }
  const cookie = cookieOf(answer)
  const { body } = await api.request('GET', '/api/auth/csrf-token', {
    headers: { cookie: `session=${cookie}` },
  })
  const csrf = (body.data as { csrf_token: string } | undefined)?.csrf_token ?? ''
  return {
    token,
    cookie,
    csrf,
    bearer: { authorization: `Bearer ${token}` },
    browser: { cookie: `session=${cookie}`, 'x-csrf-token': csrf, origin: api.url },
  }
}
