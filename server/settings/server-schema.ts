import * as v from 'valibot'
import { LEAST_CPUS } from '#server/platform/engine/workload'
import { Quotas } from '#server/projects/schema'
import { OneLine } from './fields-schema.ts'

const Days = (what: string, fallback: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(3650),
    v.description(`Days for which ${what} are kept. Default ${fallback}.`),
  )
const Percent = (what: string, fallback: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(100),
    v.description(`Share of the engine's disk ${what}, in percent. Default ${fallback}.`),
  )
const serverEntries = {
  name: v.pipe(
    OneLine(64),
    v.description('Name of this installation, for mails and the dashboard.'),
    v.examples(['Portreeve']),
  ),
  audit_retention_days: Days('lines of the audit log', 365),
  event_retention_days: Days('events', 90),
  job_retention_days: Days('background jobs that have ended, the newest 100,000 at most', 90),
  deployment_log_retention_days: Days('logs of deployments', 90),
  runtime_log_retention_days: Days('what instances of apps and databases printed', 14),
  runtime_log_max_bytes: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1024 ** 2),
    v.maxValue(10 * 1024 ** 3),
    v.description(
      'Bytes of what its instances printed that are kept for each app and database, newest first. Default 20 MiB.',
    ),
  ),
  unused_image_retention_days: Days('images that nothing uses or can be rolled back to', 7),
  build_cache_retention_days: Days('parts of the build cache that no build used', 14),
  build_cache_disk_percent: Percent('that the build cache may take', 20),
  disk_pressure_percent: Percent('in use from which all unused images and all build cache go, each hour', 85),
  releases_kept: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(50),
    v.description('Releases per app whose images are kept to roll back to. Default 5.'),
  ),
  default_cpus: v.nullable(
    v.pipe(
      v.number(),
      v.minValue(LEAST_CPUS),
      v.maxValue(128),
      v.description(
        'CPU cores that an instance may use when its app says nothing; null: as many as the host has. Holds from the next deployment of an app.',
      ),
    ),
  ),
  default_memory_bytes: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(6 * 1024 * 1024),
    v.maxValue(1024 ** 4),
    v.description(
      'Memory that an instance may use when its app says nothing. Default 512 MiB. Holds from the next deployment of an app.',
    ),
  ),
  default_project_quotas: v.pipe(
    v.strictObject(Quotas.entries),
    v.description(
      'Limits of each project that a member makes from now on; those that an administrator makes have none. Replaces what was set. Default: none.',
    ),
    v.examples([{ apps: 10, memory_bytes: 4_294_967_296, storage_bytes: 21_474_836_480 }]),
  ),
  cors_origins: v.pipe(
    v.array(
      v.pipe(
        v.string(),
        v.maxLength(253),
        v.check(
          (text) =>
            URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text,
          'must be an origin such as https://tools.example.com: scheme, host and port, and nothing behind.',
        ),
      ),
    ),
    v.maxLength(50),
    v.description(
      'Origins whose pages may call the API from a browser, with a token or an API key and never with the cookie. Default: none.',
    ),
    v.examples([['https://tools.example.com']]),
  ),
  owners_may_invite: v.pipe(
    v.boolean(),
    v.description(
      'Whether owners of projects may invite people who have no account yet. Default: administrators only.',
    ),
  ),
}
const BuildConcurrency = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(64),
  v.description(
    'Builds that run at the same time. Default: PORTREEVE_BUILD_CONCURRENCY of the environment, else 1. Holds at once; builds under way are not ended.',
  ),
)

/** The body of `PUT /api/settings`. Source: endpoints.tsv, group settings. */
export const ServerSettingsChange = v.partial(
  v.strictObject({
    ...serverEntries,
    build_concurrency: v.pipe(
      v.nullable(BuildConcurrency),
      v.description('Builds that run at the same time; null: as the environment says.'),
    ),
  }),
)
export type ServerSettingsChange = v.InferOutput<typeof ServerSettingsChange>
export const ServerSettings = v.pipe(
  v.object({ ...serverEntries, build_concurrency: BuildConcurrency }),
  v.title('ServerSettings'),
)
export type ServerSettings = v.InferOutput<typeof ServerSettings>
