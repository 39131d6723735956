import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import { SECRET, Timestamp } from '#server/kernel/schemas'
import { OBJECT_STORES } from '#server/platform/objectstore/stores'

const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
  v.description('Name of the destination, unique on the installation.'),
)
const Passphrase = v.pipe(
  v.string(),
  v.minLength(12),
  v.maxLength(1000),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
  v.description(
    'Encrypted archives of this destination open with it, also on another installation. Keep it elsewhere too; it is never shown.',
  ),
  SECRET,
)
const Kind = v.pipe(
  v.picklist(OBJECT_STORES.map(({ kind }) => kind) as ['local', 's3', 'sftp']),
  v.title('StorageKind'),
  v.description('`local`: a folder of this server; `s3`: S3-compatible storage; `sftp`: an SSH server.'),
)
const IsDefault = v.pipe(
  v.boolean(),
  v.description('Whether backups that name no destination go there. One destination is the default.'),
)

const choices = OBJECT_STORES.map(({ kind, config }) =>
  v.strictObject({
    name: Name,
    kind: v.literal(kind),
    config: v.optional(config as v.GenericSchema, {}),
    passphrase: v.optional(Passphrase),
    is_default: v.optional(IsDefault, false),
  }),
)
export interface NewStorageProvider {
  name: string
  kind: string
  config: Record<string, unknown>
  passphrase?: string | undefined
  is_default: boolean
}
export const NewStorageProvider = v.pipe(
  v.variant('kind', choices as [(typeof choices)[number], ...typeof choices]),
  v.title('NewStorageProvider'),
)

export const StorageProviderChange = v.pipe(
  v.strictObject({
    name: v.optional(Name),
    config: v.optional(
      v.pipe(
        v.record(v.string(), v.unknown()),
        v.description('Fields to change; the others, secrets included, stay as they are.'),
      ),
    ),
    passphrase: v.optional(Passphrase),
    is_default: v.optional(v.pipe(v.literal(true), v.description('Makes this destination the default.'))),
  }),
  v.title('StorageProviderChange'),
)
export type StorageProviderChange = v.InferOutput<typeof StorageProviderChange>

/** Never a secret: their names only. */
export const StorageProvider = v.pipe(
  v.object({
    id: v.string(),
    name: v.string(),
    kind: Kind,
    config: v.pipe(v.record(v.string(), v.unknown()), v.description('Without the fields that are secrets.')),
    secrets: v.pipe(v.array(v.string()), v.description('Names of the secret fields that are set.')),
    location: v.pipe(v.string(), v.description('Where the archives lie, in words.')),
    has_passphrase: v.pipe(
      v.boolean(),
      v.description('Whether encrypted archives also open with a passphrase.'),
    ),
    is_default: IsDefault,
    checked_at: v.pipe(
      v.nullable(Timestamp),
      v.description('When an object was last written, read back and deleted; null before that.'),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('StorageProvider'),
)
export type StorageProvider = v.InferInput<typeof StorageProvider>

export const StorageTest = v.pipe(
  v.object({
    id: v.string(),
    checked_at: Timestamp,
    duration_ms: v.pipe(
      v.number(),
      v.integer(),
      v.description('Time of writing, reading and deleting, in milliseconds.'),
    ),
  }),
  v.title('StorageTest'),
)
export type StorageTest = v.InferOutput<typeof StorageTest>
