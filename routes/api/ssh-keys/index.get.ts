import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { KeyQuery, SshKey } from '#server/ssh-keys/schema'

/** SSH keys of the projects in which the caller is a developer, newest first. */
export default endpoint({
  summary: 'List SSH keys',
  description: 'Public halves and fingerprints; private halves never leave the server.',
  access: 'developer',
  effect: 'read',
  query: KeyQuery,
  response: list(SshKey),
  handler: ({ actor, query, services }) => services.ssh_keys.list(actor, query),
})
