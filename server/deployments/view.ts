import type { Failure, StepRow } from '#server/kernel/jobs/definition'
import { requestOf, type DeploymentRow, type ListedDeployment } from './repository.ts'
import type { Deployment } from './schema.ts'

const between = (from: string | null, to: string | null): number | null =>
  from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null

/** What a list shows of a deployment. */
export function summaryOf(row: ListedDeployment) {
  const failure = row.failure ? (JSON.parse(row.failure) as Failure) : null
  return {
    id: row.id,
    app_id: row.app_id,
    number: row.number,
    status: row.status,
    trigger: row.trigger as Deployment['trigger'],
    branch: row.branch,
    commit: row.commit_sha
      ? { sha: row.commit_sha, message: row.commit_message, author: row.commit_author }
      : null,
    image: row.image,
    rolled_back_to: row.trigger === 'rollback' ? (requestOf(row).from_deployment ?? null) : null,
    reason: requestOf(row).reason ?? null,
    error: failure && {
      step: failure.step,
      code: failure.code,
      message: failure.message,
      hint: failure.hint,
      log: failure.log ?? [],
    },
    created_by: row.created_by,
    created_at: row.created_at,
    started_at: row.started_at,
    live_at: row.live_at,
    finished_at: row.finished_at,
  }
}

/** The whole deployment with its steps as the runner recorded them. */
export function viewOf(
  row: DeploymentRow,
  steps: readonly StepRow[],
  last_good_id: string | null,
): Deployment {
  return {
    ...summaryOf(row),
    steps: steps.map((step) => ({
      name: step.name,
      status: step.status,
      started_at: step.started_at,
      duration_ms: step.duration_ms,
      error: step.failure ? (JSON.parse(step.failure) as Failure).message : null,
    })),
    last_good_id,
    timings: {
      queued_ms: between(row.created_at, row.started_at),
      live_ms: between(row.started_at, row.live_at),
      total_ms: between(row.started_at, row.finished_at),
    },
    plan: row.plan ? (JSON.parse(row.plan) as NonNullable<Deployment['plan']>) : null,
  }
}
