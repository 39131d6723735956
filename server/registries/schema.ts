import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import { SECRET, Timestamp } from '#server/kernel/schemas'

const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
)
const Host = v.pipe(
  v.string(),
  v.trim(),
  v.toLowerCase(),
  v.maxLength(259),
  v.regex(
    /^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:\d{1,5})?$/,
    'must be a host name such as ghcr.io, without scheme and path.',
  ),
  v.description('As image references begin with it; `docker.io` for Docker Hub.'),
  v.examples(['ghcr.io', 'registry.example.com:5000']),
)
const Username = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(200),
  v.check((text) => !hasControl(text) && !text.includes(':'), 'must be a user name without a colon.'),
)
const Password = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(8192),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
  v.description('Password or access token. Never shown again.'),
  SECRET,
)

export const NewRegistry = v.strictObject({
  name: Name,
  host: Host,
  username: Username,
  password: Password,
})
export type NewRegistry = v.InferOutput<typeof NewRegistry>
export const RegistryChange = v.strictObject({
  name: v.optional(Name),
  username: v.optional(Username),
  password: v.optional(Password),
})
export type RegistryChange = v.InferOutput<typeof RegistryChange>

/** Never the password. */
export const Registry = v.pipe(
  v.object({
    id: v.string(),
    name: v.string(),
    host: v.string(),
    username: v.string(),
    verified_at: v.pipe(Timestamp, v.description('When the registry last accepted these credentials.')),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Registry'),
)
export type Registry = v.InferOutput<typeof Registry>
