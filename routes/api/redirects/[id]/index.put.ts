import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Redirect, RedirectChange } from '#server/redirects/schema'

export default endpoint({
  summary: 'Edit a redirect rule',
  description:
    'Only the fields that are given change. One that would then stand at the same place as another of its kind is refused with 409. The answer comes once the edge obeys, after two seconds at most; an edge that is away then follows as soon as it can be reached.',
  access: 'developer',
  scope: { noun: 'redirect' },
  params: IdParam,
  body: RedirectChange,
  example: { to: '/newer', priority: 50 },
  response: data(Redirect),
  errors: ['CONFLICT'],
  async handler({ actor, params, body, services }) {
    const changed = services.redirects.change(actor, params.id, body)
    await services.ingress.settled()
    return { data: changed }
  },
})
