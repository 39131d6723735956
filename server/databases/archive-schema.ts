import * as v from 'valibot'
import { Timestamp } from '#server/kernel/schemas'

const Enabled = v.pipe(
  v.boolean(),
  v.description(
    'Whether every change is archived at the destination, so that the database can go back to any second. Turning it on or off restarts the server once.',
  ),
)
const Days = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(365),
  v.description('Days that it is possible to go back, 1 to 365; older copies and logs are removed.'),
)
const Encrypted = v.pipe(
  v.boolean(),
  v.description('Encrypts copies and logs (AES-256-GCM) with a key that only this installation opens.'),
)
/** Fields that are absent keep what they are. */
export const PointInTimeChange = v.pipe(
  v.strictObject({
    enabled: v.optional(Enabled),
    days: v.optional(Days),
    destination_id: v.optional(
      v.nullable(
        v.pipe(v.string(), v.maxLength(64), v.description('Storage provider; null for the default one.')),
      ),
    ),
    encrypted: v.optional(Encrypted),
  }),
  v.title('PointInTimeChange'),
  v.description('Going back to any second; PostgreSQL only.'),
)
export type PointInTimeChange = v.InferOutput<typeof PointInTimeChange>

const nullableTime = (what: string) => v.pipe(v.nullable(Timestamp), v.description(what))
const stateEntries = {
  status: v.pipe(
    v.picklist(['off', 'starting', 'active', 'failing']),
    v.description(
      '`starting`: the first copy is being made; `failing`: nothing reaches the destination, see `error`.',
    ),
  ),
  earliest: nullableTime('Oldest moment that can be gone back to.'),
  latest: nullableTime('Newest moment of which everything is at the destination.'),
  last_archived_at: nullableTime('When a piece of the log last reached the destination.'),
  last_copy_at: nullableTime('When the last copy of all files was whole; one is made every day.'),
  waiting_bytes: v.pipe(
    v.number(),
    v.description(
      'Bytes of the log on the disk of the database that wait for the destination. Beyond 4 GiB what follows is left out, and archiving begins anew.',
    ),
  ),
  error: v.pipe(v.nullable(v.string()), v.description('Why archiving does not work, and what to do.')),
}
export const PointInTimeState = v.pipe(
  v.object({
    enabled: Enabled,
    days: Days,
    destination_id: v.pipe(v.nullable(v.string()), v.description('Null for the default one.')),
    encrypted: Encrypted,
    ...stateEntries,
  }),
  v.title('PointInTimeState'),
)
export type PointInTimeState = v.InferOutput<typeof PointInTimeState>
/** The part of it that the archive knows. */
export type ArchiveView = Omit<PointInTimeState, 'enabled' | 'days' | 'destination_id' | 'encrypted'>

export const DEFAULT_DAYS = 7
