import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { MountChange, NewMount } from '#server/volumes/schema'

export default endpoint({
  summary: 'Mount a volume, or a config file given inline',
  description:
    'Takes effect with the next deployment. A fresh volume belongs to the user of the image. A volume that only one instance may write to makes deployments end the old instance first; `notice` says so.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: NewMount,
  example: { path: '/etc/shop/shop.toml', content: 'currency = "EUR"\n', mode: '0640' },
  status: 201,
  response: data(MountChange),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.volumes.mount(actor, params.id, body),
  }),
})
