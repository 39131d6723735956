import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewNode, Node } from '#server/nodes/schema'

/** Looks at a server at once; a job makes it a member. */
export default endpoint({
  summary: 'Add a server over SSH: checks, installs the engine, joins it',
  description:
    'The server is looked at before anything is done: what speaks against it is 409, each check a sentence in `details`. Without `host_key` the 409 has the key that the server shows in `details`, under the path `host_key`; compare it, then send it. The answer is `joining`; one that `failed` says why in `last_error`, and is tried again by the same request.',
  access: 'admin',
  body: NewNode,
  example: { address: '203.0.113.7', ssh_key_id: 'ssh_0123456789abcdefghjk' },
  status: 201,
  response: data(Node),
  errors: ['CONFLICT'],
  handler: async ({ actor, body, services }) => ({ data: await services.nodes.add(actor, body) }),
})
