import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewUptimeCheck, UptimeCheck } from '#server/monitoring/uptime/schema'

/** Makes a check that looks from this server. */
export default endpoint({
  summary: 'Create an uptime check',
  description:
    'Looked at once and then at its interval. Private addresses are refused unless the installation allows them. A check that is down raises the built-in alert.',
  access: 'developer',
  scope: { noun: 'app', field: 'app_id', or_project: true },
  body: NewUptimeCheck,
  example: { name: 'Shop', target: 'https://shop.example.com/health' },
  status: 201,
  response: data(UptimeCheck),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, project_id, body, services }) => ({
    data: services.monitoring.uptime.add(actor, project_id, body),
  }),
})
