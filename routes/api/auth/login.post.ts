import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { writeSession } from '#server/http/session-cookie'
import { LoginBody, LoginResult } from '#server/identity/schema'

/** Logs in and also sets the `session` cookie, so that a browser can go on without keeping the token. */
export default endpoint({
  summary: 'Log in',
  description:
    'Answers a bearer token and sets the `session` cookie (HttpOnly, SameSite=Lax; over HTTPS `__Host-session`, Secure). With the cookie, requests that change something also need `X-CSRF-Token`. ' +
    'At most 5 attempts a minute per client address count, whatever comes of them; many failures for one account slow its logins down.',
  access: 'public',
  body: LoginBody,
  example: { email: 'admin@localhost', password: 'correct horse battery staple' },
  response: data(LoginResult),
  errors: ['INVALID_CREDENTIALS', 'TOTP_REQUIRED', 'RATE_LIMITED'],
  async handler({ body, services, facts, response }) {
    const { token, user, cookie, max_age_s } = await services.identity.login(body, facts)
    writeSession(response, facts.secure, cookie, max_age_s)
    return { data: { token, user } }
  },
})
