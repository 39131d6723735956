import type { AppStatus } from '#server/apps/schema'
import type { Trigger } from '#server/deployments/schema'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { ClockTrust } from '#server/kernel/clock-trust'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { PreviewEvent } from './machine.ts'
import type { PreviewRepository, PreviewRow } from './repository.ts'
import type { PreviewSettingsService } from './settings.ts'

/** What previews look at of an app. */
export interface PreviewedApp {
  id: string
  name: string
  project_id: string
  preview_id: string | null
  status: AppStatus
  source: string
  git_url: string | null
  branch: string | null
  last_error: string | null
}
/** Where a preview gets its code from, and what it is called. */
export interface RunnerSource {
  preview_id: string
  name: string
  git_url: string
  branch: string
}
/** What is to be deployed. */
export interface DeployAsk {
  branch: string
  commit?: string
}
/** The newest deployment of an app; `failure` is JSON. */
export interface NewestDeployment {
  id: string
  number: number
  status: string
  commit_sha: string | null
  failure: string | null
  finished_at: string | null
}
/** A database that an app is linked to, by the variable that names it. */
export interface LinkedDatabase {
  id: string
  name: string
  key: string
}
/** What previews need of other domains; handed in at composition. */
export interface PreviewPorts {
  app(id: string): PreviewedApp | undefined
  isNameTaken(name: string): boolean
  /** Throws 409 when the project may not have one more. */
  requireQuota(project_id: string): void
  requireEngine(): void
  checkBranch(text: string): void
  /** Throws 422 for an address that may not be cloned from. */
  checkGitUrl(text: string): void
  /** Makes the app that runs a preview; answers its id. */
  createRunner(parent_id: string, source: RunnerSource): string
  /** Brings it to the configuration that its app has now. */
  followParent(id: string, parent_id: string, source: Pick<RunnerSource, 'git_url' | 'branch'>): void
  /** Whether the app mounts something that its previews get as well. */
  hasMounts(app_id: string): boolean
  /** Brings the mounts of a preview to those of its app; inline files are secrets. */
  followMounts(id: string, parent_id: string, may: { files: boolean }): Promise<void>
  removeRunner(id: string): void
  failRunner(id: string, error: string): void
  /** Queues a deployment in the current transaction; answers its id. */
  deploy(app_id: string, trigger: Trigger, requested: DeployAsk, actor: Actor): string
  latestDeployment(app_id: string): NewestDeployment | null
  address(app_id: string): { hostname: string; url: string }
  linkedDatabases(app_id: string): LinkedDatabase[]
  database(id: string): { id: string; name: string; status: string } | undefined
  /** What a database offers to apps. */
  databaseVariables(id: string): Readonly<Record<string, string>> | undefined
  newestBackup(database_id: string): string | undefined
  /** Begins a restore into a new database of the preview, in the current transaction. */
  restore(backup_id: string, name: string, preview_id: string): { database_id: string; job_id: string }
  link(database_id: string, app_id: string, key: string): void
  removeDatabase(id: string): void
  removeNetwork(preview: PreviewRow): Promise<void>
  /** Whether a pull request is still open at the forge; a sentence where the forge cannot be asked. */
  pullRequestState(app_id: string, number: number): Promise<'open' | 'closed' | { unknown: string }>
}

/** What the parts of this domain work with. */
export interface PreviewContext {
  db: Db
  clock: Clock
  clock_trust: ClockTrust
  events: Events
  audit: AuditTrail
  jobs: Jobs
  repository: PreviewRepository
  settings: PreviewSettingsService
  ports: PreviewPorts
  /** Changes columns; answers the row as it is then. */
  change(id: string, columns: Parameters<PreviewRepository['update']>[1]): PreviewRow
  /** Moves the status by an event of the machine. */
  advance(id: string, event: PreviewEvent): PreviewRow
  /** Tells of a preview, as an event of the app that it is a preview of. */
  note(row: PreviewRow, type: string, payload?: Record<string, unknown>, actor?: Actor): void
  record(actor: Actor, row: PreviewRow, action: string, after?: Record<string, unknown>): void
}

export const expiryOf = (ttl_seconds: number | null, clock: Clock): string | null =>
  ttl_seconds === null ? null : new Date(clock.now() + ttl_seconds * 1000).toISOString()
