import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { writeSession } from '#server/http/session-cookie'
import { LoggedOut } from '#server/identity/schema'

/** Ends the session: its bearer token and its cookie are worthless from then on. */
export default endpoint({
  summary: 'Log out',
  description: 'Ends the current session with its token and cookie, and closes WebSockets that it opened.',
  access: 'self',
  effect: 'read',
  response: data(LoggedOut),
  errors: ['BAD_REQUEST'],
  allow_stale_password: true,
  handler({ actor, services, facts, response }) {
    services.identity.sessions.logout(actor)
    writeSession(response, facts.secure, '', 0)
    return { data: { logged_out: true as const } }
  },
})
