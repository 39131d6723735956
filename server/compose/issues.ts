/** One thing that is wrong with a compose file: its dotted path and what to do about it. Never echoes a value. */
export interface ComposeIssue {
  path: string
  message: string
}

/** Of what is made of variables alone: a plan is made before they are set, a deployment is not. */
export const NOTHING_SET = 'is empty: set the variables that it is made of.'
/** More than this helps nobody, and a hostile file would fill an answer with them. */
const MAX_ISSUES = 50
/** Of a longer list nobody needs more to see what is missing. */
const MAX_NAMES = 10

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

/** An entry of a list, or a field of one: what is wrong with it may be told of the list, or of the entry. */
const ENTRY = /^(.*)(?:(?<=\.[0-9]{1,9})\.[^.]+|\.[0-9]{1,9})$/
/** Values that variables leave open because they are not set, by their paths. */
type OpenValues = ReadonlyMap<string, ReadonlySet<string>>

/** Collects what is wrong, so that a user hears of everything at once. */
export class Issues {
  readonly found: ComposeIssue[] = []
  #open = new Map<string, Set<string>>()
  #is_plan = false

  /**
   * Tells what is open from here on. Of that a plan finds nothing wrong, since nobody could set the
   * variables of an app that is refused; a deployment names them.
   */
  leaveOpen(values: OpenValues, is_plan: boolean): void {
    this.#is_plan = is_plan
    for (const [path, names] of values)
      for (const place of new Set([path, path.replace(ENTRY, '$1')])) {
        const all = this.#open.get(place) ?? new Set<string>()
        for (const name of names) if (all.size < MAX_NAMES) all.add(name)
        this.#open.set(place, all)
      }
  }

  add(path: string, fault: string): undefined {
    const open = this.#open.get(path)
    if (open && this.#is_plan) return
    const message =
      open && fault !== NOTHING_SET
        ? `${fault} Variables that are not set: ${[...open].sort().join(', ')}.`
        : fault
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
