import { endpoint } from '#server/endpoint'
import { list, sortedPaging } from '#server/http/schemas'
import { Catalog } from '#server/templates/catalog-schema'

/** Catalogues of templates that were added. */
export default endpoint({
  summary: 'List added catalogues of templates',
  description:
    'Newest first, with the digest that each is pinned to. The templates of the release are not in it.',
  access: 'admin',
  effect: 'read',
  query: sortedPaging(['name', 'created_at']),
  response: list(Catalog),
  handler: ({ query, services }) => services.templates.catalogs.list(query),
})
