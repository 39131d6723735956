import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { SystemInfo } from '#server/system/schema'

export default endpoint({
  summary: 'Version, engine, addresses and uptime of the installation',
  description:
    'What this server is and what it has found: the engine, the edge and the domain below which apps get their names.',
  access: 'viewer',
  response: data(SystemInfo),
  handler: async ({ services }) => ({ data: await services.system.info() }),
})
