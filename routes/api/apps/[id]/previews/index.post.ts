import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { NewPreview, Preview } from '#server/previews/schema'

/** For forges without a webhook, and for branches without a pull request. */
export default endpoint({
  summary: 'Make a preview of a branch, or bring it up to date',
  description:
    'Shows a branch of the repository of the app under a number. Called again with the same number it deploys again. Previews must be on for the app.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: NewPreview,
  example: { number: 12, branch: 'feature/checkout' },
  status: 201,
  response: data(Preview),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, body, services }) => ({
    data: services.previews.create(actor, params.id, body),
  }),
})
