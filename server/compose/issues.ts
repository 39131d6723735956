/** One thing that is wrong with a compose file: its dotted path and what to do about it. Never echoes a value. */
export interface ComposeIssue {
  path: string
  message: string
}

/** Of what is made of variables alone: a plan is made before they are set, a deployment is not. */
export const NOTHING_SET = 'is empty: set the variables that it is made of.'
/** More than this helps nobody, and a hostile file would fill an answer with them. */
const MAX_ISSUES = 50

/** A compose file that is not taken; all that is wrong with it at once. */
export class ComposeError extends Error {
  readonly issues: readonly ComposeIssue[]
  constructor(issues: readonly ComposeIssue[]) {
    const [first] = issues
    super(first ? `${first.path ? `${first.path}: ` : ''}${first.message}` : 'The compose file is not taken.')
    this.name = 'ComposeError'
    this.issues = issues
  }
}

/** Collects what is wrong, so that a user hears of everything at once. */
export class Issues {
  readonly found: ComposeIssue[] = []
  add(path: string, message: string): undefined {
    const known = this.found.some((issue) => issue.path === path && issue.message === message)
    if (!known && this.found.length < MAX_ISSUES) this.found.push({ path, message })
  }
  /** Throws when anything was added. */
  settle(): void {
    if (this.found.length > 0) throw new ComposeError(this.found)
  }
}

export const at = (parent: string, key: string | number): string =>
  parent === '' ? String(key) : `${parent}.${key}`

/** What a parsed file holds: nothing about its shape is trusted. */
export type Fields = Record<string, unknown>
export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
