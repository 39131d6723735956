import * as v from 'valibot'
import { AppChange } from '#server/apps/schema'
import { AppName } from '#server/apps/configuration-schema'
import { NewSchedule } from '#server/backups/schedule-schema'
import { NewCronJob } from '#server/cron/schema'
import { PointInTimeChange } from '#server/databases/archive-schema'
import { DatabaseName, NewDatabase, NewLink } from '#server/databases/schema'
import { DomainChange, NewDomain } from '#server/domains/schema'
import { NewVariable, VariableKey } from '#server/env/schema'
import { NewMount, NewVolume } from '#server/volumes/schema'

const named = (text: string) => v.pipe(v.string(), v.minLength(1), v.maxLength(100), v.description(text))

const variable = v.strictObject({
  value: v.optional(
    v.pipe(v.string(), v.maxLength(100_000), v.description('Value; never that of a secret.')),
  ),
  secret: NewVariable.entries.secret,
  scopes: NewVariable.entries.scopes,
  preview_value: NewVariable.entries.preview_value,
  comment: NewVariable.entries.comment,
})
const shared_variable = v.strictObject({
  value: variable.entries.value,
  secret: variable.entries.secret,
  comment: variable.entries.comment,
})
/** The password of a page is a secret, so that it has no place in a file. */
const { basic_auth: _password, ...rules } = DomainChange.entries
const domain = v.strictObject({
  hostname: NewDomain.entries.hostname,
  ssl_mode: NewDomain.entries.ssl_mode,
  ...rules,
})
const { app_id: _app, name: _name, http: _call, ...cron } = NewCronJob.entries
const cron_job = v.strictObject({
  ...v.partial(v.strictObject(cron)).entries,
  expression: cron.expression,
  http: v.optional(
    v.strictObject({
      url: v.pipe(v.string(), v.maxLength(2048), v.description('Address that is called.')),
      method: v.optional(
        v.pipe(
          v.picklist(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD']),
          v.description('Default `POST`.'),
        ),
      ),
    }),
  ),
})
/** Ids are of one installation; names are of all. */
const destination = v.optional(
  v.nullable(named('Name of the storage provider. Default: the default one at that time.')),
)
const { name: _db, project_id: _project, ...of_database } = NewDatabase.entries
const { destination_id: _far, ...of_archive } = PointInTimeChange.pipe[0].entries
const database = v.strictObject({
  ...of_database,
  point_in_time: v.optional(
    v.pipe(
      v.strictObject({ ...of_archive, destination }),
      v.description('Going back to any second; PostgreSQL only.'),
    ),
  ),
  limits: v.optional(
    v.strictObject({
      cpus: v.optional(v.pipe(v.number(), v.description('CPU limit in cores.'))),
      memory_bytes: v.optional(v.pipe(v.number(), v.integer(), v.description('Memory limit in bytes.'))),
    }),
  ),
  public: v.optional(v.pipe(v.boolean(), v.description('Whether clients from outside may connect.'))),
})
const { name: VolumeName, project_id: _owner, ...of_volume } = NewVolume.entries
const volume = v.strictObject({ ...of_volume, access: v.optional(of_volume.access.wrapped) })
const { path: MountPath, volume_id: _volume, ...of_mount } = NewMount.pipe[0].entries
const mount = v.strictObject({
  volume: v.optional(v.pipe(VolumeName, v.description('Name of a volume of the project.'))),
  read_only: of_mount.read_only,
  content: v.optional(
    v.pipe(
      v.string(),
      v.maxBytes(262_144),
      v.description('Text of a config file that may be committed, at most 256 KiB.'),
    ),
  ),
  file: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(512),
      v.description(
        'A config file beside this one, for text that is kept elsewhere. Where it is missing, a mount that is there stays as it is.',
      ),
    ),
  ),
  mode: of_mount.mode,
})
export type Mount = v.InferOutput<typeof mount>
const {
  name: _schedule,
  target: _kind,
  target_id: _id,
  destination_id: _to,
  ...of_schedule
} = NewSchedule.entries
const backup = v.strictObject({
  ...v.partial(v.strictObject(of_schedule)).entries,
  cron: of_schedule.cron,
  target: v.pipe(v.picklist(['app', 'database', 'volume']), v.description('Kind of what is copied.')),
  of: named('Name of what is copied, in this project.'),
  destination,
})

/** Text that stands for `{ [key]: text }` in what people write. */
const orShort = <S extends v.GenericSchema>(schema: S, short: boolean) =>
  (short ? v.union([v.string(), v.number(), v.boolean(), schema]) : schema) as unknown as S

function build(short: boolean) {
  const {
    name: _own,
    ssh_key_id: _key,
    git_credential_id: _token,
    node_id: _server,
    ...configuration
  } = AppChange.entries
  const app = v.strictObject({
    source: v.optional(
      v.pipe(
        v.picklist(['git', 'image', 'dockerfile', 'compose', 'upload']),
        v.description('Default: what the other fields say.'),
      ),
    ),
    ...configuration,
    variables: v.optional(
      v.pipe(
        v.record(VariableKey, orShort(variable, short)),
        v.description(
          'Variables by name: a value, or `{ secret: true }` for one whose value is kept elsewhere.',
        ),
      ),
    ),
    domains: v.optional(
      v.pipe(v.array(orShort(domain, short)), v.description('Host names beside the automatic one.')),
    ),
    databases: v.optional(
      v.pipe(
        v.record(DatabaseName, NewLink.entries.key.wrapped),
        v.description('Databases of the project, with the variable that gets the address of each.'),
      ),
    ),
    mounts: v.optional(
      v.pipe(
        v.record(MountPath, orShort(mount, short)),
        v.description(
          'Volumes and config files by their path in the container: the name of a volume, or what it is.',
        ),
      ),
    ),
    cron: v.optional(
      v.pipe(v.record(named('Name of the job.'), cron_job), v.description('Cron jobs by name.')),
    ),
  })
  return v.pipe(
    v.strictObject({
      $schema: v.optional(v.pipe(v.string(), v.description('Ignored; editors find the schema by it.'))),
      project: v.optional(
        named('Name of the project; made when there is none. Default: the default project.'),
      ),
      variables: v.optional(
        v.pipe(
          v.record(VariableKey, orShort(shared_variable, short)),
          v.description('Variables that the apps of the project share.'),
        ),
      ),
      databases: v.optional(v.pipe(v.record(DatabaseName, database), v.description('Databases by name.'))),
      volumes: v.optional(v.pipe(v.record(VolumeName, volume), v.description('Volumes by name.'))),
      apps: v.optional(v.pipe(v.record(AppName, app), v.description('Apps by name.'))),
      backups: v.optional(
        v.pipe(v.record(named('Name of the schedule.'), backup), v.description('Backup schedules by name.')),
      ),
    }),
    v.title('portreeve.yaml'),
    v.description('A project of Portreeve as code.'),
  )
}

/** `portreeve.yaml` after the short forms were written out. */
export const ProjectFile = build(false)
export type ProjectFile = v.InferOutput<typeof ProjectFile>
export type ProjectApp = NonNullable<ProjectFile['apps']>[string]
/** `portreeve.yaml` as people write it, for editors. */
export const WrittenProjectFile = build(true)
