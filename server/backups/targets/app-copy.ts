import { text } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import * as v from 'valibot'
import type { AppSnapshot } from '#server/apps/copies'
import { ArchiveError } from '../archive/archive-error.ts'
import { readSections } from '../archive/bundle.ts'
import type { OpenDump } from '../target.ts'

const FORMAT = 1
const name = v.pipe(v.string(), v.regex(/^[a-z0-9_-]{1,63}$/))
const textOf = (length: number) => v.pipe(v.string(), v.maxLength(length))

/** Everything of an app that is not the content of a volume or a database. Holds secrets in clear. */
export const AppCopy = v.object({
  format: v.literal(FORMAT),
  name: textOf(100),
  /** Commit of what was live, where it came from a repository. */
  commit: v.nullable(textOf(200)),
  app: v.pipe(
    v.looseObject({
      configuration: v.looseObject({ source: textOf(32) }),
      auto_deploy: v.boolean(),
      watch_paths: v.array(v.string()),
      soak_seconds: v.number(),
    }),
    v.transform((app) => app as unknown as AppSnapshot),
  ),
  variables: v.array(
    v.object({
      key: textOf(255),
      value: v.string(),
      preview_value: v.nullable(v.string()),
      secret: v.boolean(),
      build: v.boolean(),
      runtime: v.boolean(),
      comment: v.nullable(v.string()),
    }),
  ),
  volumes: v.array(
    v.object({ name, access: v.picklist(['single_writer', 'shared']), size_bytes: v.nullable(v.number()) }),
  ),
  mounts: v.array(v.object({ path: v.string(), volume: name, read_only: v.boolean() })),
  files: v.array(v.object({ path: v.string(), content: v.string(), mode: v.number() })),
  databases: v.array(
    v.object({
      name,
      engine: textOf(32),
      version: textOf(32),
      /** Variable that the link gives the app; null where only references of variables name it. */
      key: v.nullable(textOf(255)),
      cpus: v.number(),
      memory_bytes: v.number(),
    }),
  ),
  /** Read by their own domains, which check what is in them. Archives from before had none. */
  domains: v.optional(v.array(v.looseObject({ hostname: textOf(255) })), []),
  cron_jobs: v.optional(v.array(v.looseObject({ name: textOf(100) })), []),
})
export type AppCopy = v.InferOutput<typeof AppCopy>

/** Reads what an archive says of its app. It comes from outside: everything in it is checked. */
export async function readCopy(bytes: AsyncIterable<Uint8Array>): Promise<AppCopy> {
  try {
    return v.parse(AppCopy, JSON.parse(await text(Readable.from(bytes))))
  } catch (cause) {
    throw new ArchiveError('damaged', 'The description of the app in the archive cannot be read.', { cause })
  }
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
