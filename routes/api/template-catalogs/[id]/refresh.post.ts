import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Catalog, RefreshCatalog } from '#server/templates/catalog-schema'

/** Fetches a catalogue again. */
export default endpoint({
  summary: 'Fetch a catalogue of templates again',
  description:
    'A catalogue whose content is not what was taken first is 409 with its new digest; asked again with that `digest`, it replaces the old one. Apps that were made of its templates stay as they are.',
  access: 'admin',
  params: IdParam,
  body: RefreshCatalog,
  example: {},
  response: data(Catalog),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.templates.catalogs.refresh(actor, params.id, body),
  }),
})
