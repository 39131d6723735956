import * as v from 'valibot'
import { pagingEntries, SECRET, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'
import { mountPathFault } from '#server/kernel/mount-path'

const MAX_CONTENT = 262_144
const GIB = 1024 ** 3

export const VolumeStatus = v.pipe(
  v.picklist(['creating', 'ready', 'missing', 'deleting']),
  v.title('VolumeStatus'),
  v.description(
    '`missing`: the volume is no longer on the server, although nobody deleted it here. An app that mounts it does not start; an empty one is never put in its place.',
  ),
)
export type VolumeStatus = v.InferOutput<typeof VolumeStatus>
const VolumeAccess = v.pipe(
  v.picklist(['single_writer', 'shared']),
  v.title('VolumeAccess'),
  v.description(
    '`single_writer`: one app with one replica writes to it, and a deployment ends the old instance before the new one starts. `shared`: any number of instances write at once, so that deployments stay without downtime; for programs that lock their files themselves.',
  ),
)
const ProjectId = v.optional(
  v.pipe(
    v.string(),
    v.maxLength(64),
    v.description('Project that the volume belongs to; the default project when absent.'),
  ),
)
export const VolumeSize = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1024 ** 2),
  v.maxValue(1024 ** 5),
  v.description(
    'Bytes that the volume is meant to hold. The event `volume.over_size` tells when it holds more.',
  ),
  v.examples([10 * GIB]),
)

export const NewVolume = v.strictObject({
  project_id: ProjectId,
  name: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(63),
    v.regex(
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
      'must be lower-case letters, digits and hyphens, not at the ends.',
    ),
    v.description('Unique in the project.'),
    v.examples(['uploads']),
  ),
  size_bytes: v.optional(v.nullable(VolumeSize)),
  access: v.optional(VolumeAccess, 'single_writer'),
})
export type NewVolume = v.InferOutput<typeof NewVolume>

export const Volume = v.pipe(
  v.object({
    id: v.string(),
    project_id: v.string(),
    name: v.string(),
    status: VolumeStatus,
    access: VolumeAccess,
    size_bytes: v.pipe(
      v.nullable(v.number()),
      v.description('Bytes that it is meant to hold; null for no limit.'),
    ),
    used_bytes: v.pipe(v.nullable(v.number()), v.description('Bytes in use when it was measured.')),
    measured_at: v.nullable(Timestamp),
    mounts: v.pipe(
      v.array(
        v.object({
          id: v.string(),
          app_id: v.string(),
          app_name: v.string(),
          path: v.string(),
          read_only: v.boolean(),
        }),
      ),
      v.description('Apps that have it in their next release.'),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Volume'),
)
export type Volume = v.InferOutput<typeof Volume>
export const DeleteVolumeQuery = v.strictObject({
  skip_backup: v.optional(
    v.pipe(v.boolean(), v.description('Delete without a final backup. Default false.')),
  ),
})

export const VolumeQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'status', 'used_bytes', 'created_at']),
  project_id: severalIds('Only of this project.'),
  status: several(VolumeStatus),
  q: v.optional(v.pipe(v.string(), v.maxLength(100), v.description('Part of the name.'))),
})
export type VolumeQuery = v.InferOutput<typeof VolumeQuery>

export const MountPath = v.pipe(
  v.string(),
  v.maxLength(512),
  v.rawCheck(({ dataset, addIssue }) => {
    const fault = dataset.typed ? mountPathFault(dataset.value) : undefined
    if (fault) addIssue({ message: fault })
  }),
  v.description('Absolute path inside the container.'),
  v.examples(['/data']),
)
export const FileContent = v.pipe(
  v.string(),
  v.maxBytes(MAX_CONTENT),
  v.regex(/^[^\u0000]*$/, 'must be text.'),
)
export const NewMount = v.pipe(
  v.strictObject({
    path: MountPath,
    volume_id: v.optional(
      v.pipe(v.string(), v.maxLength(64), v.description('Volume to mount, of the same project as the app.')),
    ),
    read_only: v.optional(
      v.pipe(
        v.boolean(),
        v.description('Mount the volume so that the app cannot write to it. Default false.'),
      ),
    ),
    content: v.optional(
      v.pipe(
        FileContent,
        v.description('Text of a config file, at most 256 KiB. Stored encrypted and never shown again.'),
        SECRET,
      ),
    ),
    mode: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as 0644.'),
        v.description("Permissions of the file, which belongs to the image's user. Default 0644."),
        v.examples(['0644']),
      ),
    ),
    replace: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'Take the place of the mount that is at this path, in one step: when this one is refused, that one stays. Default false.',
        ),
      ),
    ),
  }),
  v.forward(
    v.check(
      ({ volume_id, content }) => (volume_id === undefined) !== (content === undefined),
      'or content is required, one of the two.',
    ),
    ['volume_id'],
  ),
  v.forward(
    v.check(
      ({ content, read_only }) => content === undefined || read_only === undefined,
      'is for volumes; use mode.',
    ),
    ['read_only'],
  ),
  v.forward(
    v.check(
      ({ volume_id, mode }) => volume_id === undefined || mode === undefined,
      'is for files; use read_only.',
    ),
    ['mode'],
  ),
)
export type NewMount = v.InferOutput<typeof NewMount>

/** How the next release of the app takes the place of the one that serves. */
export const UpdateStrategy = v.pipe(
  v.picklist(['start_first', 'stop_first']),
  v.title('UpdateStrategy'),
  v.description(
    '`start_first`: the new release starts beside the old one, without downtime. `stop_first`: the old instance ends before the new one starts, because only one may write to a volume; requests wait at the edge or get 503 in between.',
  ),
)
export const Mount = v.pipe(
  v.object({
    id: v.string(),
    app_id: v.string(),
    kind: v.picklist(['volume', 'file']),
    path: v.string(),
    volume_id: v.nullable(v.string()),
    volume_name: v.nullable(v.string()),
    read_only: v.boolean(),
    mode: v.pipe(v.nullable(v.string()), v.description('Permissions of a file, octal.')),
    content_bytes: v.pipe(
      v.nullable(v.number()),
      v.description('Length of a file; its text is never shown.'),
    ),
    content_sha256: v.pipe(
      v.nullable(v.string()),
      v.description(
        'SHA-256 of the text of a file, hexadecimal, for those who may set it; null for volumes and everybody else.',
      ),
    ),
    created_at: Timestamp,
  }),
  v.title('Mount'),
)
export type Mount = v.InferOutput<typeof Mount>
/** Answer to a change of mounts: what follows from it is said before it happens. */
export const MountChange = v.pipe(
  v.object({
    ...Mount.entries,
    update: UpdateStrategy,
    notice: v.pipe(
      v.nullable(v.string()),
      v.description('What changes with the next deployment; null when nothing does.'),
    ),
  }),
  v.title('MountChange'),
)
export type MountChange = v.InferOutput<typeof MountChange>
export const MountParams = v.object({
  id: v.pipe(v.string(), v.description('App.')),
  mount_id: v.pipe(v.string(), v.description('Mount of the app.')),
})
