import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { ServerSettings, ServerSettingsChange } from '#server/settings/server-schema'

/** Names, limits, retention and who may invite people. */
export default endpoint({
  summary: 'Change the server settings',
  description: 'A field that is left out keeps its value. Holds at once, without a restart.',
  access: 'admin',
  body: ServerSettingsChange,
  example: { name: 'Portreeve', build_concurrency: 2, audit_retention_days: 365 },
  response: data(ServerSettings),
  handler: async ({ actor, body, services }) => ({
    data: await services.settings.changeServer(actor, body),
  }),
})
