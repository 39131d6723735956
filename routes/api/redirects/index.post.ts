import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewRedirect, Redirect } from '#server/redirects/schema'

/** Adds a rule that holds at the edge at once. */
export default endpoint({
  summary: 'Create a redirect rule for a domain',
  description: 'The edge answers instead of the app. A rule that would send clients in a circle, also together with other rules, with www handling or with HTTPS, is refused with 422, and so is a pattern that may need very many attempts.',
  access: 'developer',
  scope: { noun: 'domain', field: 'domain_id' },
  body: NewRedirect,
  example: { domain_id: 'dom_0123456789abcdefghjk', kind: 'regex', from: '/blog/(\\d+)/([^/]+)', to: '/posts/$2', status: 308 },
  status: 201,
  response: data(Redirect),
  errors: ['CONFLICT'],
  handler: ({ actor, body, services }) => ({ data: services.redirects.add(actor, body) }),
})
