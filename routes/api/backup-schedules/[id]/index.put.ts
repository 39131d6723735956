import { Schedule, ScheduleChange } from '#server/backups/schedule-schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Changes, pauses or resumes a schedule. */
export default endpoint({
  summary: 'Change a backup schedule',
  description: 'What is not named stays. `enabled: false` pauses, `true` resumes with the next time to come.',
  access: 'developer',
  scope: { noun: 'backup_schedule' },
  params: IdParam,
  body: ScheduleChange,
  example: { enabled: false },
  response: data(Schedule),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, body, services }) => ({
    data: services.backups.schedules.change(actor, params.id, body),
  }),
})
