import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewRegistry, Registry } from '#server/registries/schema'

/** Adds the login of a registry, after trying it. */
export default endpoint({
  summary: 'Add an image registry',
  description:
    'The login is tried before it is kept; what the registry refuses is 422. Pulls of its images use it from then on.',
  access: 'admin',
  body: NewRegistry,
  example: { name: 'GitHub packages', host: 'ghcr.io', username: 'ada', password: 'ghp_example' },
  status: 201,
  response: data(Registry),
  errors: ['CONFLICT'],
  handler: async ({ actor, body, services }) => ({
    data: await services.registries.add(actor, body),
  }),
})
