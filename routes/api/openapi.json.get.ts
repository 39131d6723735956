import { documentTexts } from '#api-document'
import { endpoint } from '#server/endpoint'
import { documentFor } from '#server/http/openapi-text'

export default endpoint({
  summary: 'OpenAPI 3.1 description as JSON',
  description:
    'Made from the definitions that serve the requests, so that it always matches the running version. Generate a client from it.',
  access: 'self',
  media_types: ['application/json'],
  handler: async ({ services }) =>
    documentFor(await documentTexts.json(), 'json', services.http.document.public_url),
})
