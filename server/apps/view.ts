import type { InferOutput } from 'valibot'
import { changedKeys, type Configuration, configurationOf } from './configuration.ts'
import { pendingPin, type PinPorts } from './pins.ts'
import type { AppRow } from './repository.ts'
import type { App, LatestDeployment } from './schema.ts'

/** What the view of an app needs of other domains. */
export interface ViewPorts extends Pick<PinPorts, 'server' | 'nodeOf' | 'nameOfServer'> {
  latestDeployment(app_id: string): InferOutput<typeof LatestDeployment> | null
  liveConfiguration(release_id: string): Configuration | undefined
  /** Keys of variables that a release does not have as they are now. */
  changedVariables(app: AppRow, release_id: string): string[]
  automaticDomain(app_id: string): { hostname: string; url: string }
  /** Whether the app has other mounts now than a release of it. */
  mountsChanged(app_id: string, release_id: string): boolean
}

/** What callers see of an app, with what has changed since its live release was made. */
export const createAppView =
  (ports: ViewPorts) =>
  (row: AppRow): App => {
    const configuration = configurationOf(row)
    const live = row.live_release_id ? ports.liveConfiguration(row.live_release_id) : undefined
    const changed = live
      ? [
          ...changedKeys(live, configuration),
          ...(pendingPin(row, ports) ? ['node_id'] : []),
          ...(ports.mountsChanged(row.id, row.live_release_id!) ? ['mounts'] : []),
          ...ports.changedVariables(row, row.live_release_id!).map((key) => `env.${key}`),
        ]
      : []
    const { hostname, url } = ports.automaticDomain(row.id)
    return {
      ...configuration,
      id: row.id,
      name: row.name,
      project_id: row.project_id,
      preview_id: row.preview_id,
      status: row.status,
      source: row.source as App['source'],
      domain: hostname,
      url,
      auto_deploy: row.auto_deploy === 1,
      watch_paths: JSON.parse(row.watch_paths) as string[],
      soak_seconds: row.soak_seconds,
      ssh_key_id: row.ssh_key_id,
      git_credential_id: row.git_credential_id,
      node_id: row.node_id,
      live_deployment_id: row.live_deployment_id,
      last_error: row.last_error,
      latest_deployment: ports.latestDeployment(row.id),
      needs_redeploy: changed.length > 0,
      changed_keys: changed,
      created_at: row.created_at,
      updated_at: row.updated_at,
    }
  }
