import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewSshKey, SshKey } from '#server/ssh-keys/schema'

/** Adds a key that exists already. */
export default endpoint({
  summary: 'Add an SSH key',
  description:
    'A private key in the form of OpenSSH or PEM, with its passphrase where it has one, or a public key alone. The private half is stored encrypted and never shown again.',
  access: 'developer',
  scope: 'body',
  body: NewSshKey,
  example: {
    name: 'Deploy key of the shop',
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0v9GmVVGLp9bF2lV5m0m3Uu7mJ6n0fYp7m9x1c2d3e deploy',
    host: 'github.com',
  },
  status: 201,
  response: data(SshKey),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, project_id, body, services }) => ({
    data: await services.ssh_keys.add(actor, project_id, body),
  }),
})
