import * as v from 'valibot'
import { GitError } from './git.ts'
import { checkRef } from './refs.ts'

/** Why git is not asked for a branch of this name; undefined for a good one. */
function faultOf(name: string): string | undefined {
  try {
    checkRef(name)
    return undefined
  } catch (error) {
    if (error instanceof GitError) return error.message
    throw error
  }
}

/** The name of a branch or tag that a request gives: what git could read as an option or a range is refused. */
export const BranchName = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(255),
  v.rawCheck(({ dataset, addIssue }) => {
    const fault = dataset.typed ? faultOf(dataset.value) : undefined
    if (fault !== undefined) addIssue({ message: `cannot be used. ${fault}` })
  }),
)
