import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { GenerateSshKey, SshKey } from '#server/ssh-keys/schema'

/** Makes a key pair on the server. */
export default endpoint({
  summary: 'Generate an Ed25519 key pair',
  description:
    'Answers the public half, to be added to the Git host as a deploy key. The private half stays on the server.',
  access: 'developer',
  scope: 'body',
  body: GenerateSshKey,
  example: { name: 'Deploy key of the shop', host: 'github.com' },
  status: 201,
  response: data(SshKey),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, project_id, body, services }) => ({
    data: services.ssh_keys.generate(actor, project_id, body),
  }),
})
