import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { PreviewSettings } from '#server/previews/schema'

export default endpoint({
  summary: 'Settings of the previews of an app',
  description: 'Secrets among the variables are masked.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(PreviewSettings),
  handler: ({ params, services }) => ({ data: services.previews.settings(params.id) }),
})
