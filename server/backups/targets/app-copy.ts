import * as v from 'valibot'
import { AppSnapshot } from '#server/apps/snapshot-schema'
import { DatabaseName, Engine, limitEntries, Version } from '#server/databases/schema'
import { VariableKey, VariableText } from '#server/env/schema'
import { FileContent, MountPath, VolumeSize } from '#server/volumes/schema'
import { ArchiveError } from '../archive/archive-error.ts'
import { readSections } from '../archive/bundle.ts'
import type { OpenDump } from '../target.ts'

const FORMAT = 1
/** More than any description: a thousand variables and a hundred files, each as long as it may be. */
const LONGEST = 128 * 1024 ** 2
const name = v.pipe(v.string(), v.regex(/^[a-z0-9_-]{1,63}$/))
const textOf = (length: number) => v.pipe(v.string(), v.maxLength(length))

/** Everything of an app that is not the content of a volume or a database. Holds secrets in clear. */
export const AppCopy = v.object({
  format: v.literal(FORMAT),
  name: textOf(100),
  /** Project of the app when it was backed up; null in archives from before that was noted. */
  project_id: v.optional(v.nullable(textOf(100)), null),
  /** Commit of what was live, where it came from a repository. */
  commit: v.nullable(textOf(200)),
  app: AppSnapshot,
  variables: v.array(
    v.object({
      key: VariableKey,
      value: VariableText,
      preview_value: v.nullable(VariableText),
      secret: v.boolean(),
      build: v.boolean(),
      runtime: v.boolean(),
      comment: v.nullable(textOf(500)),
    }),
  ),
  volumes: v.array(
    v.object({
      /** Null in archives from before it was noted. */
      id: v.optional(v.nullable(textOf(100)), null),
      name,
      access: v.picklist(['single_writer', 'shared']),
      size_bytes: v.nullable(VolumeSize),
    }),
  ),
  mounts: v.array(
    v.object({
      /** With the names of a volume and a service of its file before it, for a compose app. */
      path: v.union([MountPath, v.pipe(v.string(), v.regex(/^[^:/]+:[^:/]+:\//), v.maxLength(1000))]),
      volume: name,
      read_only: v.boolean(),
    }),
  ),
  files: v.array(
    v.object({
      path: MountPath,
      content: FileContent,
      mode: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(0o777)),
    }),
  ),
  databases: v.array(
    v.object({
      name: DatabaseName,
      engine: Engine,
      version: Version,
      /** Variable that the link gives the app; null where only references of variables name it. */
      key: v.nullable(VariableKey),
      ...limitEntries,
    }),
  ),
  /** What the app used and the archive does not hold, since it outlives the app: used again where it is still there. */
  kept: v.optional(
    v.object({
      volumes: v.array(v.object({ id: textOf(100), name })),
      databases: v.array(v.object({ id: textOf(100), name: DatabaseName, key: VariableKey })),
    }),
    { volumes: [], databases: [] },
  ),
  /** Read by their own domains, which check what is in them. Archives from before had none. */
  domains: v.optional(v.array(v.looseObject({ hostname: textOf(255) })), []),
  cron_jobs: v.optional(v.array(v.looseObject({ name: textOf(100) })), []),
})
export type AppCopy = v.InferOutput<typeof AppCopy>

/** A text that comes from outside and must fit into memory. */
async function textIn(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.byteLength
    if (size > LONGEST) throw new RangeError('too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/**
 * Reads what an archive says of its app. It comes from outside: everything in it is checked. What is wrong is told
 * by the name of its field: the value may be a secret.
 */
export async function readCopy(bytes: AsyncIterable<Uint8Array>): Promise<AppCopy> {
  let given: unknown
  try {
    given = JSON.parse(await textIn(bytes))
  } catch (cause) {
    throw new ArchiveError('damaged', 'The description of the app in the archive cannot be read.', { cause })
  }
  const { success, output, issues } = v.safeParse(AppCopy, given)
  if (success) return output
  const field = v.getDotPath(issues[0])
  throw new ArchiveError(
    'damaged',
    `The description of the app in the archive is not valid${field ? ` in ${field}` : ''}.`,
  )
}

/**
 * What of an archive may come into a project. An app that moved left its databases behind, and volumes that it had no
 * more: whoever may restore it where it is now has no part in those. @param projectOf where a volume is now.
 */
export function withinProject(
  copy: AppCopy,
  project_id: string,
  projectOf: (volume_id: string) => string | undefined,
): { copy: AppCopy; left_out: string[] } {
  if (copy.project_id === null || copy.project_id === project_id) return { copy, left_out: [] }
  const stays = (what: string) => `${what} stays in the project that the app was in when it was backed up.`
  const isHere = ({ id }: { id: string | null }) => id !== null && projectOf(id) === project_id
  const all = {
    volumes: [...copy.volumes, ...copy.kept.volumes],
    databases: [...copy.databases, ...copy.kept.databases],
  }
  const left_out = [
    ...all.volumes.filter((one) => !isHere(one)).map(({ name }) => stays(`The volume ${name}`)),
    ...all.databases.map(({ name }) => stays(`The database ${name}`)),
  ]
  const kept = { volumes: copy.kept.volumes.filter(isHere), databases: [] }
  return { copy: { ...copy, volumes: copy.volumes.filter(isHere), databases: [], kept }, left_out }
}

/** What an archive says of its app, which is the first that it holds. */
export async function copyIn(open: OpenDump): Promise<AppCopy> {
  for await (const { bytes } of readSections(open())) {
    // Leaving the loop ends the stream, so the text is read before.
    const copy = await readCopy(bytes)
    return copy
  }
  throw new ArchiveError('damaged', 'The archive is empty.')
}

/** Variables whose references name databases as they are called now. */
export function renamed(
  variables: AppCopy['variables'],
  names: ReadonlyMap<string, string>,
): AppCopy['variables'] {
  const follow = (value: string) =>
    value.replaceAll(/(\$\{\{\s*)([a-z0-9_-]+)(\.)/g, (whole, open: string, database: string, dot: string) =>
      names.has(database) ? `${open}${names.get(database)}${dot}` : whole,
    )
  return variables.map((variable) => ({
    ...variable,
    value: follow(variable.value),
    preview_value: variable.preview_value === null ? null : follow(variable.preview_value),
  }))
}
