import { Schedule, ScheduleQuery } from '#server/backups/schedule-schema'
import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'

/** Schedules of the caller's projects, newest first. */
export default endpoint({
  summary: 'List backup schedules',
  description: 'With the time of the next run, and of the last one that was missed.',
  access: 'viewer',
  query: ScheduleQuery,
  response: list(Schedule),
  handler: ({ actor, query, services }) => services.backups.schedules.list(actor, query),
})
