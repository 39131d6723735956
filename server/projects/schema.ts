import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import { pagingEntries, several, sorting, Timestamp } from '#server/kernel/schemas'

const ProjectRoleName = v.pipe(
  v.picklist(['owner', 'developer', 'viewer']),
  v.description(
    'Role in the project: owners may do everything in it, developers change and deploy, viewers read.',
  ),
)
const ProjectName = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(64),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
  v.examples(['shop']),
)
const Description = v.pipe(v.string(), v.trim(), v.maxLength(1000))
const Limit = (what: string) =>
  v.optional(
    v.nullable(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.maxValue(Number.MAX_SAFE_INTEGER),
        v.description(what),
      ),
    ),
  )

/** Upper limits of a project; null or absent does not limit. Kinds of resources bring more of them. */
export const Quotas = v.objectWithRest(
  {
    apps: Limit('Most apps.'),
    domains: Limit(
      'Most domains beside the automatic names of apps, of all apps together or of one. Without a number a project may have 500 and an app 250.',
    ),
    databases: Limit('Most databases.'),
    volumes: Limit('Most volumes.'),
    memory_bytes: Limit(
      'Most memory that all instances of apps and databases together may be given, stopped ones too. Told by 409 when something is created, changed, moved, deployed or rolled back.',
    ),
    cpus: v.optional(
      v.nullable(
        v.pipe(
          v.number(),
          v.minValue(0),
          v.maxValue(100_000),
          v.description('Most CPU cores, counted in the same way.'),
        ),
      ),
    ),
    storage_bytes: Limit(
      'Most bytes of all volumes and databases together, as they were measured last. Once they hold as much, 409 is the answer to every further volume or database, restored ones and those of compose files too; and once they hold more, what writes to the one that grew most since the last measurement, at most a minute ago, is stopped: its status is failed, and `last_error` says why.',
    ),
    backup_bytes: Limit(
      'Most bytes of the archives of all backups together, wherever they lie, with the logs that are kept to go back to a time. Once they hold as much, 409 is the answer to every further one, uploaded dumps and final backups before a deletion too, and scheduled ones fail.',
    ),
  },
  Limit('Most resources of a kind.'),
)
export type Quotas = v.InferOutput<typeof Quotas>
/** Whether a quota is one that every installation has. */
export const isFixedQuota = (name: string): boolean => Object.hasOwn(Quotas.entries, name)

export const NewProject = v.strictObject({
  name: ProjectName,
  description: v.optional(Description, ''),
})
export type NewProject = v.InferOutput<typeof NewProject>
export const ProjectChange = v.strictObject({
  name: v.optional(ProjectName),
  description: v.optional(Description),
  quotas: v.optional(v.pipe(Quotas, v.description('Replaces the limits; administrators only.'))),
})
export type ProjectChange = v.InferOutput<typeof ProjectChange>

export const Project = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['prj_0123456789abcdefghjk'])),
    name: v.string(),
    description: v.string(),
    is_default: v.pipe(
      v.boolean(),
      v.description('New resources go here when they name no project. Cannot be deleted.'),
    ),
    role: v.pipe(ProjectRoleName, v.description("The caller's role in it.")),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Project'),
)
export type Project = v.InferOutput<typeof Project>
export const ProjectWithCounts = v.pipe(
  v.object({
    ...Project.entries,
    quotas: Quotas,
    counts: v.pipe(
      v.record(v.string(), v.number()),
      v.description('How many of each kind of resource there are.'),
      v.examples([{ app: 3, ssh_key: 1, member: 4 }]),
    ),
  }),
  v.title('ProjectWithCounts'),
)
export type ProjectWithCounts = v.InferOutput<typeof ProjectWithCounts>
export const ProjectQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'created_at']),
  q: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('Part of the name.'))),
})

export const ProjectMember = v.pipe(
  v.object({
    user_id: v.pipe(
      v.string(),
      v.description('The user; for somebody who was just invited, the invitation.'),
    ),
    email: v.string(),
    name: v.string(),
    role: ProjectRoleName,
    status: v.pipe(
      v.picklist(['active', 'invited']),
      v.description('`invited`: becomes a member on accepting the invitation.'),
    ),
    created_at: Timestamp,
  }),
  v.title('ProjectMember'),
)
export type ProjectMember = v.InferOutput<typeof ProjectMember>
export const NewProjectMember = v.pipe(
  v.strictObject({
    user_id: v.optional(v.pipe(v.string(), v.maxLength(64))),
    email: v.optional(
      v.pipe(
        v.string(),
        v.trim(),
        v.toLowerCase(),
        v.maxLength(254),
        v.description('Address of a user of this installation, instead of `user_id`.'),
      ),
    ),
    role: ProjectRoleName,
  }),
  v.forward(
    v.check(
      ({ user_id, email }) => (user_id === undefined) !== (email === undefined),
      'or email is required, one of the two.',
    ),
    ['user_id'],
  ),
)
export type NewProjectMember = v.InferOutput<typeof NewProjectMember>
export const ProjectMemberChange = v.strictObject({ role: ProjectRoleName })
export const MemberParams = v.object({
  id: v.pipe(v.string(), v.description('Project.')),
  user_id: v.pipe(v.string(), v.description('User.')),
})

/** Something that lives in a project. */
export const Resource = v.pipe(
  v.object({
    kind: v.pipe(v.string(), v.examples(['app', 'database', 'domain'])),
    id: v.string(),
    name: v.string(),
    status: v.nullable(v.string()),
    project_id: v.nullable(v.string()),
    created_at: v.nullable(Timestamp),
  }),
  v.title('ResourceEntry'),
)
export type Resource = v.InferOutput<typeof Resource>
export const ResourceQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['kind', 'name', 'status', 'created_at'], 'Kind by kind, newest first.'),
  kind: several(v.pipe(v.string(), v.maxLength(40)), 'Only this kind.'),
})
