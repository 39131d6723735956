import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { AppScaling, ScalingChange } from '#server/scaling/schema'

/** Answers at once; instances come and go in the background, and `status` says when they have. */
export default endpoint({
  summary: 'Scale an app',
  description:
    'Only the fields that are given change, and they hold at once: no deployment, no restart. New instances get requests once they are ready, those that go finish theirs first. `replicas: 0` puts the app to sleep: it has no instance until a request wakes it, which is held for at most 30 seconds; processes beside web run on.',
  access: 'developer',
  scope: { noun: 'app' },
  params: IdParam,
  body: ScalingChange,
  example: { replicas: 3, limits: { cpus: 0.5, memory_bytes: 268_435_456 } },
  response: data(AppScaling),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  async handler({ actor, params, body, services }) {
    services.scaling.change(actor, params.id, body)
    return { data: await services.scaling.get(params.id) }
  },
})
