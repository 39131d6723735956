import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Settings } from '#server/settings/schema'

/** Everything that can be set for the installation, secrets masked. */
export default endpoint({
  summary: 'Read all settings',
  description:
    'One object with a section for each PUT below; what was never set has its default. Secrets are masked: a section may be sent back as it was read.',
  access: 'admin',
  response: data(Settings),
  handler: ({ services }) => ({ data: services.settings.all() }),
})
