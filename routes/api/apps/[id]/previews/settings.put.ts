import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { PreviewSettings, PreviewSettingsChange } from '#server/previews/schema'

/** Previews are off until somebody turns them on. */
export default endpoint({
  summary: 'Change the settings of the previews of an app',
  description:
    'What is left out keeps its value. Settings hold from the next deployment of each preview on; a lower limit removes none.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: PreviewSettingsChange,
  example: { enabled: true, limit: 5, ttl_seconds: 604_800, forks: 'approval', env: { APP_ENV: 'preview' } },
  response: data(PreviewSettings),
  errors: ['CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.previews.changeSettings(actor, params.id, body),
  }),
})
