import { PendingChange } from '#server/apps/pending'
import { endpoint } from '#server/endpoint'
import { IdParam, list, pageOf, sortedPaging } from '#server/http/schemas'

export default endpoint({
  summary: 'What the next deployment of an app changes',
  description:
    'Settings, mounts and variables that differ between the live release and the one that a deployment would make now, each with its old and its new value. Empty while `needs_redeploy` is false, and while nothing is live. A new commit of the repository is not among them.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: sortedPaging(['key'], 'Settings, mounts, then variables.'),
  response: list(PendingChange),
  handler: ({ params, query, services }) => pageOf(services.apps.pending(params.id), query),
})
