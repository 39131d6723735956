import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Cleanup } from '#server/previews/schema'

/** For events of the forge that never arrived. */
export default endpoint({
  summary: 'Remove previews of closed pull requests and expired ones',
  description:
    'Asks the forge about each pull request, with the token of the project (`POST /api/git-credentials`). Removals go on in the background.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(Cleanup),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ actor, params, services }) => ({
    data: await services.previews.cleanup(actor, params.id),
  }),
})
