import * as v from 'valibot'

const Files = v.optional(v.nullable(v.array(v.string())))
/** A commit of a push, as GitHub, GitLab, Gitea and Forgejo tell it. */
export const Commit = v.object({
  id: v.string(),
  message: v.string(),
  added: Files,
  modified: Files,
  removed: Files,
})
type Commit = v.InferOutput<typeof Commit>

/** A text that a forge may leave out. */
export const text = v.optional(v.nullable(v.string()))

/** Every file that the commits touch. */
export const filesOf = (commits: readonly Commit[]): string[] =>
  commits.flatMap(({ added, modified, removed }) => [
    ...(added ?? []),
    ...(modified ?? []),
    ...(removed ?? []),
  ])
