import { endpoint } from '#server/endpoint'
import { AppVariableParams, RevealedVariable } from '#server/env/schema'
import { data } from '#server/http/schemas'

/** The only answer besides a revealed export that has a secret in it. */
export default endpoint({
  summary: 'Reveal the value of one variable',
  description:
    'As it was set, references included. The audit log says who read it. A narrowed API key gets 403.',
  access: 'developer',
  scope: { noun: 'app' },
  effect: 'write',
  params: AppVariableParams,
  response: data(RevealedVariable),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, services }) => ({
    data: services.env.reveal(actor, params.id, params.key),
  }),
})
