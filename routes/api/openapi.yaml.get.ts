import { endpoints } from '#endpoints'
import { endpoint } from '#server/endpoint'
import { createDocuments } from '#server/http/openapi-documents'

const documents = createDocuments(endpoints)

export default endpoint({
  summary: 'OpenAPI 3.1 description as YAML',
  description: 'The same as `GET /api/openapi.json`.',
  access: 'self',
  media_types: ['application/yaml'],
  handler: ({ services }) => documents.yaml(services.http.document),
})
