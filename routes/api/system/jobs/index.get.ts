import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { Job, JobQuery } from '#server/system/schema'

export default endpoint({
  summary: 'List background jobs with state and progress',
  description:
    'Jobs of the projects that the caller can see, newest first; administrators also see those of the installation.',
  access: 'viewer',
  query: JobQuery,
  response: list(Job),
  handler({ actor, query: { page, per_page, sort, ...filter }, services }) {
    return services.system.jobs(actor, filter, { page, per_page, sort })
  },
})
