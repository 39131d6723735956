import { endpoint } from '#server/endpoint'
import { ExportQuery } from '#server/env/schema'
import { IdParam } from '#server/http/schemas'

/** Reads back as it is, with secrets only when they are revealed. */
export default endpoint({
  summary: 'Export the variables of an app as dotenv text',
  description:
    'References are written as they were set. Without `reveal=true` a secret is a comment with its key, with `masked=true` a mask; with it the audit log says who read which keys, and a narrowed API key gets 403.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  query: ExportQuery,
  media_types: ['text/plain'],
  errors: ['FORBIDDEN'],
  handler({ actor, params, query, services, response }) {
    response.header('Content-Type', 'text/plain; charset=utf-8')
    response.header('Content-Disposition', 'attachment; filename="variables.env"')
    const hidden = query.masked === 'true' ? 'masked' : 'named'
    return services.env.export(actor, params.id, query.reveal === 'true' ? 'revealed' : hidden)
  },
})
