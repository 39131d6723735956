import type { PreviewContext } from './context.ts'
import type { PreviewRow } from './repository.ts'
import type { Preview } from './schema.ts'

/** What callers see of a preview. */
export function viewOf(
  row: PreviewRow,
  { repository, ports }: Pick<PreviewContext, 'repository' | 'ports'>,
): Preview {
  const runner = row.runner_id ? ports.app(row.runner_id) : undefined
  const latest = runner && ports.latestDeployment(runner.id)
  const address = runner ? ports.address(runner.id) : undefined
  return {
    id: row.id,
    app_id: row.app_id,
    number: row.number,
    name: row.name,
    title: row.title,
    status: row.status,
    source: row.source,
    pull_request_url: row.web_url,
    branch: row.branch,
    commit: row.commit_sha,
    waiting_commit: row.waiting_sha,
    is_fork: row.is_fork === 1,
    has_secrets: row.trusted === 1,
    approved_by: row.approved_by,
    approved_at: row.approved_at,
    preview_app_id: runner?.id ?? null,
    deployment: latest ? { id: latest.id, number: latest.number, status: latest.status } : null,
    domain: address?.hostname || null,
    url: address?.url || null,
    databases: repository.copies(row.id).flatMap(({ database_id, key }) => {
      const database = ports.database(database_id)
      return database ? [{ id: database.id, name: database.name, key }] : []
    }),
    last_error: row.last_error,
    expires_at: row.expires_at,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}
