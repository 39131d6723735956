import { Domain, SslModeChange } from '#server/domains/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

export default endpoint({
  summary: 'Set how a domain gets its certificate',
  description:
    '`off` serves plain HTTP. `acme` issues and renews a certificate, `self_signed` makes one at once, `custom` uses one that is uploaded, `external` leaves TLS to a proxy in front. A certificate belongs to a name, so all domains of the name with other paths change along. The answer comes once the edge obeys, after two seconds at most; an edge that is away then follows as soon as it can be reached.',
  access: 'developer',
  scope: { noun: 'domain' },
  params: IdParam,
  body: SslModeChange,
  example: { ssl_mode: 'acme' },
  response: data(Domain),
  errors: ['CONFLICT'],
  async handler({ actor, params, body, services }) {
    services.domains.setSslMode(actor, params.id, body.ssl_mode)
    await services.ingress.settled()
    return { data: services.domains.get(params.id) }
  },
})
