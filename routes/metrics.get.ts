import { endpoint } from '#server/endpoint'

/** Numbers for Prometheus, of what the key may see: with `X-API-Key`. */
export default endpoint({
  summary: 'Get metrics for Prometheus',
  description: 'The text format of Prometheus; what the caller cannot see is left out.',
  access: 'viewer',
  media_types: ['text/plain; version=0.0.4; charset=utf-8'],
  handler: ({ actor, services }) => services.monitoring.prometheus(actor),
})
