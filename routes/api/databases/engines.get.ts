import * as v from 'valibot'
import { DatabaseEngineFacts } from '#server/databases/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

export default endpoint({
  summary: 'Supported engines and versions',
  description: 'The first version of each engine is the one that a new database gets.',
  access: 'viewer',
  response: data(v.array(DatabaseEngineFacts)),
  handler({ services }) {
    return { data: services.databases.engines() }
  },
})
