import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { ProjectChange, ProjectWithCounts } from '#server/projects/schema'

/** Renames or describes a project; administrators also limit it. */
export default endpoint({
  summary: 'Change a project',
  description:
    'Only fields that are sent change. `quotas` replaces the limits, and only administrators may send it.',
  access: 'owner',
  scope: { noun: 'project' },
  params: IdParam,
  body: ProjectChange,
  example: { name: 'web shop' },
  response: data(ProjectWithCounts),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.projects.change(actor, params.id, body),
  }),
})
