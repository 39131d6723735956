import * as v from 'valibot'
import { FailureWord, pagingEntries, several, sorting, Timestamp } from '#server/kernel/schemas'

export const SystemInfo = v.pipe(
  v.object({
    version: v.string(),
    engine: v.object({
      available: v.boolean(),
      version: v.nullable(v.string()),
      api_version: v.nullable(v.string()),
      cpus: v.nullable(v.number()),
      memory_bytes: v.nullable(v.number()),
      buildkit: v.nullable(v.boolean()),
    }),
    ingress: v.object({
      running: v.boolean(),
      version: v.nullable(v.string()),
      http_port: v.number(),
      https_port: v.number(),
      message: v.nullable(
        v.pipe(v.string(), v.description('What is wrong with the edge; null when nothing is.')),
      ),
      refused_routes: v.pipe(
        v.number(),
        v.description('Routes that were left out because the edge cannot take them; the others serve.'),
      ),
    }),
    base_domain: v.string(),
    public_url: v.string(),
    warnings: v.pipe(
      v.array(v.string()),
      v.description('What is set and works, and should be another way: a sentence each.'),
    ),
    node_version: v.string(),
    database_bytes: v.number(),
    started_at: Timestamp,
    uptime_s: v.number(),
  }),
  v.title('SystemInfo'),
)

export const JobStep = v.object({
  name: v.string(),
  status: v.string(),
  attempts: v.number(),
  started_at: v.nullable(Timestamp),
  duration_ms: v.nullable(v.number()),
})
export const Job = v.pipe(
  v.object({
    id: v.string(),
    kind: v.pipe(v.string(), v.examples(['deploy'])),
    subject: v.pipe(v.string(), v.description('Id of the resource that the job works on.')),
    about: v.pipe(
      v.nullable(v.object({ kind: v.string(), id: v.string(), name: v.string() })),
      v.description(
        'The app, database, volume or other resource with a name that the subject is or belongs to. Null for the installation itself, and where it is gone.',
      ),
    ),
    project_id: v.nullable(v.string()),
    status: v.picklist(['queued', 'running', 'undoing', 'succeeded', 'failed', 'cancelled']),
    progress: v.pipe(
      v.number(),
      v.description('Share of the steps that are done, 0 to 1. One that failed or was cancelled is not.'),
    ),
    error: v.nullable(
      v.object({
        code: FailureWord,
        message: v.string(),
        hint: v.nullable(v.string()),
        step: v.nullable(v.string()),
      }),
    ),
    steps: v.array(JobStep),
    created_at: Timestamp,
    started_at: v.nullable(Timestamp),
    finished_at: v.nullable(Timestamp),
  }),
  v.title('Job'),
)
export const JobQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['kind', 'status', 'created_at'], 'Newest first.', { created_at: 'rowid' }),
  status: several(v.picklist(['queued', 'running', 'undoing', 'succeeded', 'failed', 'cancelled'])),
  kind: several(v.pipe(v.string(), v.maxLength(64)), 'Kind of job, e.g. `deploy`.'),
})
export const Health = v.object({
  status: v.picklist(['ok', 'degraded']),
  checks: v.record(v.string(), v.object({ ok: v.boolean(), message: v.optional(v.string()) })),
})
