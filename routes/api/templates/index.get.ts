import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { TemplateQuery, TemplateSummary } from '#server/templates/schema'

/** Templates by name. */
export default endpoint({
  summary: 'Browse templates',
  description: 'Stacks that are ready to deploy, by name. `q` looks into names, descriptions and categories.',
  access: 'viewer',
  effect: 'read',
  query: TemplateQuery,
  response: list(TemplateSummary),
  handler: ({ query, services }) => services.templates.list(query),
})
