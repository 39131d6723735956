import { endpoint } from '#server/endpoint'
import * as v from 'valibot'
import { Resource } from '#server/projects/schema'

/** Finds things by name, in what the caller may see. */
export default endpoint({
  summary: 'Search by name',
  description: 'Apps, databases, domains, projects and whatever else has a name, best matches first. Finds nothing that the caller may not see.',
  access: 'self',
  query: v.strictObject({
    q: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200), v.description('Part of a name; case does not matter.')),
    limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100), v.description('Most results.')), 20),
  }),
  response: v.object({ data: v.array(Resource) }),
  handler: ({ actor, query, services }) => ({ data: services.search.find(actor, query.q, query.limit) }),
})
