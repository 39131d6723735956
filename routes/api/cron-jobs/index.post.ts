import { CronJob, NewCronJob } from '#server/cron/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** A command runs beside the app, never in a serving container. */
export default endpoint({
  summary: 'Schedule a command in an app, or an HTTP call',
  description:
    'A command runs in a container of its own, in the image, environment and limits of what is live at that moment. Each time it is due it runs once, whatever daylight saving time or the clock of the server do. Jobs of an app that was stopped do not run.',
  access: 'developer',
  scope: { noun: 'app', field: 'app_id' },
  body: NewCronJob,
  example: {
    app_id: 'app_0123456789abcdefghjk',
    name: 'Clean up',
    expression: '30 4 * * *',
    timezone: 'Europe/Berlin',
    command: 'npm run clean',
    timeout_s: 900,
    overlap: 'forbid',
  },
  status: 201,
  response: data(CronJob),
  errors: ['CONFLICT'],
  handler: ({ actor, body, services }) => ({ data: services.cron.add(actor, body) }),
})
