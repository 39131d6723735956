import * as v from 'valibot'
import { GivenTime, pagingEntries, several, sorting, Timestamp } from '#server/kernel/schemas'

const Values = v.nullable(v.record(v.string(), v.unknown()))

/** One line of the audit trail. */
export const AuditLine = v.pipe(
  v.object({
    id: v.string(),
    created_at: Timestamp,
    action: v.pipe(
      v.string(),
      v.description('What happened: `<kind>.<verb>`.'),
      v.examples(['app.create', 'login.failed']),
    ),
    actor: v.object({
      id: v.pipe(
        v.nullable(v.string()),
        v.description('User; null for the platform itself and for callers who proved nothing.'),
      ),
      email: v.nullable(v.string()),
      method: v.pipe(
        v.string(),
        v.description('How the caller proved who they are: bearer, api_key, cookie, ticket, system or none.'),
      ),
      credential_id: v.pipe(v.nullable(v.string()), v.description('Session or API key that was used.')),
    }),
    resource: v.object({
      type: v.string(),
      id: v.nullable(v.string()),
      name: v.pipe(
        v.nullable(v.string()),
        v.description('What it was called then; null when the lines that are kept do not tell.'),
      ),
      exists: v.pipe(
        v.nullable(v.boolean()),
        v.description('Whether it is there now; null for what is no resource of a project.'),
      ),
    }),
    project_id: v.nullable(v.string()),
    before: v.pipe(Values, v.description('Changed fields before; secrets are never included.')),
    after: v.pipe(Values, v.description('Changed fields after; secrets are never included.')),
    address: v.nullable(v.string()),
    request_id: v.nullable(v.string()),
  }),
  v.title('AuditEntry'),
)
export type AuditLine = v.InferOutput<typeof AuditLine>

/** Query of every list of audit lines. */
export const AuditQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['created_at'], 'Newest first.', { created_at: 'seq' }),
  actor: several(v.pipe(v.string(), v.maxLength(320)), 'User id or e-mail address.'),
  action: several(
    v.pipe(v.string(), v.maxLength(100)),
    'Whole action, or all of one kind with a dot at the end: `app.`.',
  ),
  resource: several(v.pipe(v.string(), v.maxLength(100)), 'Resource id, or kind of resource: `app`.'),
  from: v.optional(v.pipe(GivenTime, v.description('Lines at or after this time.'))),
  to: v.optional(v.pipe(GivenTime, v.description('Lines before this time.'))),
  format: v.optional(
    v.pipe(
      v.picklist(['json', 'csv', 'ndjson']),
      v.description('`csv` and `ndjson` export every line that matches, without pages.'),
    ),
    'json',
  ),
})
