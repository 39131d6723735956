import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Registry, RegistryChange } from '#server/registries/schema'

/** Changes the login of a registry, after trying it. */
export default endpoint({
  summary: 'Change an image registry',
  description: 'A new user name or password is tried before it is kept.',
  access: 'admin',
  params: IdParam,
  body: RegistryChange,
  example: { password: 'ghp_another' },
  response: data(Registry),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.registries.change(actor, params.id, body),
  }),
})
