import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Takes the templates of a catalogue away. */
export default endpoint({
  summary: 'Remove a catalogue of templates',
  description: 'Apps that were made of its templates stay as they are.',
  access: 'admin',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND'],
  handler({ actor, params, services }) {
    services.templates.catalogs.remove(actor, params.id)
    return deleted(params.id)
  },
})
