import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Catalog, NewCatalog } from '#server/templates/catalog-schema'

/** Adds templates by an address or an upload. */
export default endpoint({
  summary: 'Add a catalogue of templates',
  description:
    'By the address of a JSON file (`url`) or the templates themselves. Each is checked like those of the release; a fault is 422 with its path, and nothing is added. What was taken is pinned by its digest.',
  access: 'admin',
  body: NewCatalog,
  example: { name: 'Ours', url: 'https://example.com/templates.json' },
  status: 201,
  response: data(Catalog),
  errors: ['CONFLICT'],
  handler: async ({ actor, body, services }) => ({
    data: await services.templates.catalogs.add(actor, body),
  }),
})
