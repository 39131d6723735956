import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { WsTicket } from '#server/identity/schema'

/** A ticket for opening the WebSocket where no header can be set. */
export default endpoint({
  summary: 'Get a one-use ticket for the WebSocket',
  description:
    'Valid for 30 seconds and for one connection. It carries the rights of the session or key that asked for it, and ends with it.',
  access: 'self',
  effect: 'read',
  response: data(WsTicket),
  handler: ({ actor, services }) => ({ data: services.identity.tickets.issue(actor) }),
})
