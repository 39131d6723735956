import { documentTexts } from '#api-document'
import { endpoint } from '#server/endpoint'
import { documentFor } from '#server/http/openapi-text'

export default endpoint({
  summary: 'OpenAPI 3.1 description as YAML',
  description: 'The same as `GET /api/openapi.json`.',
  access: 'self',
  media_types: ['application/yaml'],
  handler: async ({ services }) =>
    documentFor(await documentTexts.yaml(), 'yaml', services.http.document.public_url),
})
