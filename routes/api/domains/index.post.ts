import { Domain, NewDomain } from '#server/domains/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** Answers with the DNS records to set; the first look-up follows in the background. */
export default endpoint({
  summary: 'Add a custom or wildcard domain to an app',
  description:
    'The answer lists the DNS records to set, either of which proves the name. It is looked up at once, then with growing waits for three days, and serves from the moment on that it is proven. A name, the names below it and what a wildcard covers belong to one project. Several apps of the project may share a name with different paths.',
  access: 'developer',
  scope: { noun: 'app', field: 'app_id' },
  body: NewDomain,
  example: {
    app_id: 'app_0123456789abcdefghjk',
    hostname: 'shop.example.com',
    www: 'keep',
    headers: { 'X-Frame-Options': 'DENY' },
  },
  status: 201,
  response: data(Domain),
  errors: ['CONFLICT'],
  handler: ({ actor, body, services }) => ({ data: services.domains.add(actor, body) }),
})
