import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import { pagingEntries, SECRET, severalIds, sorting, Timestamp } from '#server/kernel/schemas'

const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
)
const ProjectId = v.optional(
  v.pipe(
    v.string(),
    v.maxLength(64),
    v.description('Project that the key belongs to; the default project when absent.'),
  ),
)
const Host = v.optional(
  v.nullable(
    v.pipe(
      v.string(),
      v.trim(),
      v.toLowerCase(),
      v.maxLength(253),
      v.regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be a host name such as github.com.'),
      v.description('Offer the key to this Git host only; to any, when absent.'),
      v.examples(['github.com']),
    ),
  ),
)
const KnownHosts = v.optional(
  v.nullable(
    v.pipe(
      v.string(),
      v.maxLength(16_384),
      // Each character has one place in it: of others, sixty kept the process busy for ever.
      v.regex(/^[\x20-\x7e]+(?:\n[\x20-\x7e]+)*\n?$/, 'must be lines of known_hosts.'),
      v.description(
        "Lines of known_hosts that pin the host's key. Without them published keys of known forges count, else the key seen first.",
      ),
    ),
  ),
)

export const GenerateSshKey = v.strictObject({
  project_id: ProjectId,
  name: Name,
  host: Host,
  known_hosts: KnownHosts,
})
export const NewSshKey = v.pipe(
  v.strictObject({
    ...GenerateSshKey.entries,
    private_key: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(65_536),
        v.description('OpenSSH or PEM; Ed25519, ECDSA or RSA of at least 2048 bits. Never shown again.'),
        SECRET,
      ),
    ),
    public_key: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(16_384),
        v.check((text) => !hasControl(text.trim()), 'must be one line.'),
        v.description('One line, for a key whose private half stays elsewhere.'),
      ),
    ),
    passphrase: v.optional(
      v.pipe(v.string(), v.maxLength(1024), v.description('Opens the private key; not kept.'), SECRET),
    ),
  }),
  v.forward(
    v.check(
      ({ private_key, public_key }) => (private_key === undefined) !== (public_key === undefined),
      'or public_key is required, one of the two.',
    ),
    ['private_key'],
  ),
)
export type NewSshKey = v.InferOutput<typeof NewSshKey>
export type GenerateSshKey = v.InferOutput<typeof GenerateSshKey>

/** Never the private half. */
export const SshKey = v.pipe(
  v.object({
    id: v.string(),
    project_id: v.string(),
    name: v.string(),
    type: v.pipe(v.string(), v.examples(['ssh-ed25519'])),
    public_key: v.pipe(v.string(), v.description('One line; add it to the Git host as a deploy key.')),
    fingerprint: v.pipe(v.string(), v.examples(['SHA256:uNiVztksCsDhcc0u9e8BrqXTdTUJxsCmEcFwBlHvvvM'])),
    has_private_key: v.boolean(),
    host: v.nullable(v.string()),
    known_hosts: v.nullable(v.string()),
    created_at: Timestamp,
    last_used_at: v.nullable(Timestamp),
  }),
  v.title('SshKey'),
)
export type SshKey = v.InferOutput<typeof SshKey>
export const KeyQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'created_at', 'last_used_at']),
  project_id: severalIds('Only of this project.'),
})
