import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewRedirect, Redirect } from '#server/redirects/schema'

/** Adds a rule that holds at the edge at once. */
export default endpoint({
  summary: 'Create a redirect rule for a domain',
  description:
    'The edge answers instead of the app. A second rule of a kind from the same place of a domain is refused with 409, which names the first. A rule that would send clients in a circle, also together with other rules, with www handling or with HTTPS, is refused with 422, and so is a pattern that may need very many attempts. The answer comes once the edge obeys, after two seconds at most; an edge that is away then follows as soon as it can be reached.',
  access: 'developer',
  scope: { noun: 'domain', field: 'domain_id' },
  body: NewRedirect,
  example: {
    domain_id: 'dom_0123456789abcdefghjk',
    kind: 'regex',
    from: '/blog/(\\d+)/([^/]+)',
    to: '/posts/$2',
    status: 308,
  },
  status: 201,
  response: data(Redirect),
  errors: ['CONFLICT'],
  async handler({ actor, body, services }) {
    const added = services.redirects.add(actor, body)
    await services.ingress.settled()
    return { data: added }
  },
})
