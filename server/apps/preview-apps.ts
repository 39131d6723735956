import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { AppRow, AppRepository } from './repository.ts'
import type { AppShares } from './shares.ts'

/** Where a preview gets its code from, and what it is called. */
export interface PreviewSource {
  preview_id: string
  name: string
  git_url: string
  branch: string
}

/** What the apps of previews need of other domains. */
export interface PreviewAppPorts {
  addAutomaticDomain(app: AppRow): void
  cancelDeployments(app_id: string): void
  /** Queues a deletion in the current transaction; asked for twice it happens once. */
  enqueue(kind: 'app.delete', app: AppRow, more: { volumes: boolean }): void
}

/** What a preview takes over from its app each time it is deployed. */
const followed = (parent: AppRow) => ({
  base_directory: parent.base_directory,
  compose_path: parent.compose_path,
  build: parent.build,
  port: parent.port,
  health_check: parent.health_check,
  limits: parent.limits,
  processes: parent.processes,
  soak_seconds: parent.soak_seconds,
  ssh_key_id: parent.ssh_key_id,
  git_credential_id: parent.git_credential_id,
})

/** Throws 409 for the app of a preview: it follows its app, and goes with its pull request. */
export function requireNoPreview({ preview_id, name }: Pick<AppRow, 'preview_id' | 'name'>): void {
  if (preview_id !== null)
    throw conflict(
      `${name} is a preview. Change the app that it is a preview of, or remove the preview with DELETE /api/apps/:id/previews/:number.`,
    )
}

/** Apps that run previews: like any other, with one instance, the settings of their app, and in no list. */
export function createPreviewApps(
  { db, clock, ports }: { db: Db; clock: Clock; ports: PreviewAppPorts },
  repository: AppRepository,
  shares: AppShares,
) {
  return {
    /** Makes the row and its name, in the current transaction; nothing of it is deployed yet. */
    create(parent: AppRow, { preview_id, name, git_url, branch }: PreviewSource): AppRow {
      const at = clock.iso()
      if (repository.findByName(name)) throw conflict(`There is an app named ${name} already.`)
      const row = {
        ...parent,
        ...followed(parent),
        id: newId('app'),
        name,
        preview_id,
        status: 'building' as const,
        git_url,
        branch,
        replicas: 1,
        // Previews run on the server of Portreeve, whatever their app does.
        node_id: null,
        auto_deploy: 0,
        watch_paths: '[]',
        created_at: at,
        updated_at: at,
      }
      shares.within(parent.project_id, () => repository.insert(row))
      const { web } = JSON.parse(parent.processes) as { web?: { replicas?: number } }
      const made = repository.find(row.id)!
      if (web?.replicas !== 0) ports.addAutomaticDomain(made)
      return made
    },
    /** Brings a preview to the configuration that its app has now; part of the transaction that deploys it. */
    follow(id: string, parent: AppRow, source: Pick<PreviewSource, 'git_url' | 'branch'>): void {
      shares.within(parent.project_id, () =>
        repository.update(id, { ...followed(parent), ...source }, clock.iso()),
      )
    },
    /** Removes the app of a preview with all that it holds; asked for twice it happens once. */
    remove(id: string): void {
      db.tx(() => {
        const row = repository.find(id)
        if (!row || row.preview_id === null) return
        if (row.status !== 'deleting') repository.setStatus(id, row.status, 'deleting', clock.iso())
        ports.cancelDeployments(id)
        ports.enqueue('app.delete', row, { volumes: true })
      })
    },
  }
}
