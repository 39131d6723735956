import { NewSchedule, Schedule } from '#server/backups/schedule-schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

/** Makes backups at fixed times. */
export default endpoint({
  summary: 'Create a backup schedule',
  description:
    'A run that is due while Portreeve is down is made afterwards, once, and told with the event `backup.missed`. Retention looks at the good backups of this schedule only, runs after a good one, and never deletes the newest.',
  access: 'developer',
  body: NewSchedule,
  example: {
    name: 'Every night',
    target: 'database',
    target_id: 'db_5k2m9x7q1w3e8r6t4y0z',
    cron: '30 3 * * *',
    timezone: 'Europe/Berlin',
    retention: { daily: 7, weekly: 4, monthly: 12 },
  },
  status: 201,
  response: data(Schedule),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, body, services }) => ({ data: services.backups.schedules.create(actor, body) }),
})
