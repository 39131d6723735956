import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Approval, Preview, PreviewParams } from '#server/previews/schema'

/** One commit at a time: what is pushed after that waits again. */
export default endpoint({
  summary: 'Approve the commit of a fork that waits',
  description:
    'Deploys it. Without `secrets` it gets neither secret variables nor copies of databases. Send `commit` to be sure that nothing else is approved than what you looked at.',
  access: 'developer',
  scope: { noun: 'app' },
  params: PreviewParams,
  body: Approval,
  example: { commit: '4f9c2a1b7d3e', secrets: false },
  response: data(Preview),
  errors: ['NOT_FOUND', 'CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, body, services }) => ({
    data: services.previews.approve(actor, params.id, params.number, body),
  }),
})
