import * as v from 'valibot'
import { GivenTime, pagingEntries, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'
import { BACKUP_STATUSES } from './machine.ts'

export const TARGETS = ['database', 'volume', 'app', 'platform'] as const
export type Target = (typeof TARGETS)[number]
const id = (what: string) => v.pipe(v.string(), v.maxLength(64), v.description(what))
export const TargetKind = v.pipe(
  v.picklist(TARGETS),
  v.title('BackupTarget'),
  v.description(
    'What is backed up: a database; a volume; an app with its configuration, volumes and linked databases; or Portreeve itself.',
  ),
)
const Status = v.pipe(v.picklist(BACKUP_STATUSES), v.title('BackupStatus'))
export const Encrypted = v.pipe(
  v.boolean(),
  v.description(
    'Encrypts the archive (AES-256-GCM) with a key of its own. It opens here, and with the passphrase of the destination elsewhere. Backups of apps and of the platform are always encrypted, since they hold secrets.',
  ),
)
export const PauseApp = v.pipe(
  v.boolean(),
  v.description(
    'For volumes and apps: whether what uses the volumes stands still while they are read, so that all files are of one moment, as after a power cut. What a program holds in memory and has not written is not among them; stop an app first that cannot begin from that.',
  ),
)
export const NewBackup = v.pipe(
  v.strictObject({
    target: TargetKind,
    target_id: v.optional(id('The database, volume or app; none for the platform.')),
    destination_id: v.optional(id('Storage provider; without it, the default one.')),
    encrypted: v.optional(Encrypted, true),
    pause_app: v.optional(PauseApp, false),
  }),
  v.title('NewBackup'),
)
export type NewBackup = v.InferOutput<typeof NewBackup>
export const DatabaseBackup = v.pipe(
  v.strictObject({
    destination_id: v.optional(id('Storage provider; without it, the default one.')),
    encrypted: v.optional(Encrypted, true),
  }),
  v.title('DatabaseBackup'),
)

export const Verification = v.pipe(
  v.object({
    status: v.picklist(['running', 'succeeded', 'failed']),
    at: Timestamp,
    objects: v.pipe(
      v.nullable(v.number()),
      v.description('Tables, collections, key spaces or files that were found.'),
    ),
    rows: v.pipe(
      v.nullable(v.number()),
      v.description('Rows, documents or keys in all of them; for files their bytes.'),
    ),
    counts: v.pipe(
      v.record(v.string(), v.number()),
      v.description('The same for each, at most 1,000 of them.'),
    ),
    duration_ms: v.nullable(v.number()),
    error: v.nullable(v.string()),
  }),
  v.title('BackupVerification'),
)
export type Verification = v.InferOutput<typeof Verification>

export const Backup = v.pipe(
  v.object({
    id: v.string(),
    target: TargetKind,
    target_id: v.nullable(v.string()),
    target_name: v.pipe(v.string(), v.description('Its name when the backup was made.')),
    project_id: v.pipe(v.nullable(v.string()), v.description('Null for the platform.')),
    status: Status,
    trigger: v.pipe(
      v.picklist(['manual', 'schedule', 'final', 'upload']),
      v.description('`final`: taken because its target was deleted.'),
    ),
    schedule_id: v.nullable(v.string()),
    size_bytes: v.pipe(v.nullable(v.number()), v.description('Size of the archive in bytes.')),
    original_bytes: v.pipe(v.nullable(v.number()), v.description('Bytes before compression.')),
    sha256: v.pipe(v.nullable(v.string()), v.description('Checksum of the archive, hexadecimal.')),
    encrypted: Encrypted,
    destination_id: v.string(),
    destination: v.pipe(v.string(), v.description('Name of the storage provider.')),
    location: v.pipe(v.string(), v.description('Where the archive lies at the destination.')),
    engine: v.nullable(v.string()),
    version: v.nullable(v.string()),
    error: v.pipe(v.nullable(v.string()), v.description('What went wrong, and what to do.')),
    duration_ms: v.nullable(v.number()),
    verification: v.pipe(
      v.nullable(Verification),
      v.description('The last trial restore; null when there was none.'),
    ),
    verified_at: v.pipe(v.nullable(Timestamp), v.description('When a trial restore last succeeded.')),
    expires_at: v.pipe(
      v.nullable(Timestamp),
      v.description('When its age alone no longer keeps it; null when age does not matter.'),
    ),
    created_at: Timestamp,
    finished_at: v.nullable(Timestamp),
  }),
  v.title('Backup'),
)
export type Backup = v.InferOutput<typeof Backup>

/** Answer to the deletion of something with data. */
export const DeletedWithBackup = v.pipe(
  v.object({
    id: v.string(),
    deleted: v.literal(true),
    final_backup_id: v.pipe(
      v.nullable(v.string()),
      v.description('The backup that is taken before anything is removed; null when none is.'),
    ),
    final_backup_location: v.pipe(
      v.nullable(v.string()),
      v.description('Where its archive lies once it is whole: the destination, and the place in it.'),
    ),
  }),
  v.title('DeletedWithBackup'),
)

export const BackupQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['status', 'size_bytes', 'created_at']),
  project_id: severalIds('Only backups of this project.'),
  target: several(TargetKind),
  target_id: severalIds('Only backups of this database, volume or app.'),
  status: several(Status),
})

const Mode = v.pipe(
  v.picklist(['in_place', 'new']),
  v.description(
    '`in_place`: the data go into a new volume, which takes the place of the present one once it is whole and answers. `new`: a new resource is made, and the present one is left alone.',
  ),
)
const NewName = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(63),
  v.description('Name of the new resource.'),
)
/** A name in place would be ignored: whoever gives one wants something new. */
const NAMED_ONLY_WHEN_NEW = 'is for what is made new: set mode to «new», or leave the name out.'
export const RestoreBackup = v.pipe(
  v.strictObject({
    mode: v.optional(Mode, 'in_place'),
    name: v.optional(NewName),
    project_id: v.optional(
      id('Project that the new resource is made in, where the one of the backup was deleted since.'),
    ),
  }),
  v.forward(
    v.check(({ mode, name }) => mode === 'new' || name === undefined, NAMED_ONLY_WHEN_NEW),
    ['name'],
  ),
  v.title('RestoreBackup'),
)
export type RestoreBackup = v.InferOutput<typeof RestoreBackup>
export const RestoreDatabase = v.pipe(
  v.strictObject({
    backup_id: v.optional(id('A backup of this very database.')),
    at: v.pipe(
      v.optional(GivenTime),
      v.description(
        'Moment to go back to, to the millisecond, in place of a backup: everything that was committed until then comes back. PostgreSQL with `point_in_time` only.',
      ),
    ),
    mode: v.optional(Mode, 'in_place'),
    name: v.optional(NewName),
  }),
  v.forward(
    v.check(
      ({ backup_id, at }) => (backup_id === undefined) !== (at === undefined),
      'is required, unless «at» is given in its place; only one of them can be.',
    ),
    ['backup_id'],
  ),
  v.forward(
    v.check(({ mode, name }) => mode === 'new' || name === undefined, NAMED_ONLY_WHEN_NEW),
    ['name'],
  ),
  v.title('RestoreDatabase'),
)
export type RestoreDatabase = v.InferOutput<typeof RestoreDatabase>
export const Restore = v.pipe(
  v.object({
    job_id: v.pipe(v.string(), v.description('Follow it with `GET /api/system/jobs/:id`.')),
    backup_id: v.pipe(v.nullable(v.string()), v.description('Null when it goes back to a moment.')),
    at: v.pipe(v.nullable(Timestamp), v.description('The moment; null when a backup is restored.')),
    mode: v.picklist(['in_place', 'new']),
    target: TargetKind,
    target_id: v.pipe(v.string(), v.description('What is restored; for `new`, the resource that is made.')),
    status: v.literal('queued'),
  }),
  v.title('Restore'),
)
export type Restore = v.InferOutput<typeof Restore>
