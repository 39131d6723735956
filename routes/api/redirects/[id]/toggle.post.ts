import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Redirect } from '#server/redirects/schema'

export default endpoint({
  summary: 'Enable or disable a redirect rule',
  description: 'Turns an enabled rule off and a disabled one on; one that would now make a circle stays off with 422.',
  access: 'developer',
  scope: { noun: 'redirect' },
  params: IdParam,
  response: data(Redirect),
  handler: ({ actor, params, services }) => ({ data: services.redirects.toggle(actor, params.id) }),
})
