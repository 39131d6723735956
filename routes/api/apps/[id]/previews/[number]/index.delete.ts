import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted } from '#server/http/schemas'
import { PreviewParams } from '#server/previews/schema'

/** The row stays, `removing`, until nothing of the preview is left. */
export default endpoint({
  summary: 'Remove one preview',
  description:
    'With its containers, images, volumes, copies of databases and its network. A later push to the pull request makes it anew.',
  access: 'developer',
  scope: { noun: 'app' },
  params: PreviewParams,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'ENGINE_UNAVAILABLE'],
  handler: ({ actor, params, services }) =>
    deleted(services.previews.remove(actor, params.id, params.number)),
})
