import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Redirect, RedirectToggle } from '#server/redirects/schema'

export default endpoint({
  summary: 'Enable or disable a redirect rule',
  description:
    'Turns an enabled rule off and a disabled one on, or makes it what `enabled` says; one that would now make a circle stays off with 422. The answer comes once the edge obeys, after two seconds at most; an edge that is away then follows as soon as it can be reached.',
  access: 'developer',
  scope: { noun: 'redirect' },
  params: IdParam,
  body: RedirectToggle,
  example: { enabled: false },
  response: data(Redirect),
  async handler({ actor, params, body, services }) {
    const toggled = services.redirects.toggle(actor, params.id, body.enabled)
    await services.ingress.settled()
    return { data: toggled }
  },
})
