import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Redirect, RedirectChange } from '#server/redirects/schema'

export default endpoint({
  summary: 'Edit a redirect rule',
  description: 'Only the fields that are given change, and they hold at the edge at once.',
  access: 'developer',
  scope: { noun: 'redirect' },
  params: IdParam,
  body: RedirectChange,
  example: { to: '/newer', priority: 50 },
  response: data(Redirect),
  handler: ({ actor, params, body, services }) => ({ data: services.redirects.change(actor, params.id, body) }),
})
