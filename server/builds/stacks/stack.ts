import type { BuildLayout } from '../layout.ts'
import type { Explanation, HealthCheckPlan, PlanFacts, SourceTree } from '../plan.ts'
import type { DeclaredSettings } from '../declared.ts'
import type { VersionRequest } from '../versions.ts'

/** What a stack sees when it plans. */
export interface StackContext {
  tree: SourceTree
  /**
   * What user and repository declare. Commands are put on top afterwards; a stack reads them where its layout
   * depends on them.
   */
  declared: DeclaredSettings
  /** The declared version, in front of all version files. */
  version_request: VersionRequest | undefined
}

/** The commands in force, after declarations were put on top of what the stack proposed. */
export interface Commands {
  install: string | null
  build: string | null
  start: string | null
  /** What else runs in the finished image: the release command, other processes, cron jobs. */
  others: readonly string[]
  /** Whether the start command is the stack's own, so that only what it needs must be in the image. */
  own_start: boolean
  port: number
  build_args: readonly string[]
}

/** What a stack proposes for one folder. */
export interface StackProposal extends PlanFacts {
  explanation: Explanation[]
  /** How the Dockerfile is made from the commands in force. */
  layout(commands: Commands): BuildLayout
}

/** One language or kind of repository. */
export interface Stack {
  name: string
  /** One sentence for the user: what makes a repository one of these. */
  help: string
  /** Files that would have been recognised. */
  looked_for: readonly string[]
  detect(tree: SourceTree): boolean
  plan(context: StackContext): StackProposal
}

/** A probe of the root path, for frameworks that answer there. */
export const HTTP_ROOT: HealthCheckPlan = { type: 'http', path: '/' }
/** A probe that only connects. */
export const TCP: HealthCheckPlan = { type: 'tcp' }

/** The first of these names whose pattern a text fits; null without one. */
export function nameIn<T extends string>(text: string, patterns: Readonly<Record<T, RegExp>>): T | null {
  return (Object.keys(patterns) as T[]).find((name) => patterns[name].test(text)) ?? null
}

/** One row of the explanation; nothing for a value that is not there. */
export function because(field: string, value: string | null | undefined, source: string): Explanation[] {
  return value === null || value === undefined ? [] : [{ field, value, source }]
}
