import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { WebhookQuery, WebhookSummary } from '#server/webhooks/schema'

/** Webhooks of the projects in which the caller is a developer, newest first. */
export default endpoint({
  summary: 'List webhooks',
  description: 'Hooks of forges, deploy hooks and notifications. Secrets are never part of a list.',
  access: 'developer',
  query: WebhookQuery,
  response: list(WebhookSummary),
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.webhooks.list(actor, filter, { page, per_page, sort })
  },
})
