import { endpoints } from '#endpoints'
import { endpoint } from '#server/endpoint'
import { createDocuments } from '#server/http/openapi-documents'

const documents = createDocuments(endpoints)

export default endpoint({
  summary: 'OpenAPI 3.1 description as JSON',
  description:
    'Made from the definitions that serve the requests, so that it always matches the running version. Generate a client from it.',
  access: 'self',
  media_types: ['application/json'],
  handler: ({ services }) => documents.json(services.http.document),
})
