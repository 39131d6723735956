import { Fatal } from '#server/kernel/jobs/definition'
import type { Release, ReleaseSettings } from './releases.ts'
import { sharesOfProcesses } from './release-shares.ts'
import type { ReconcilerPorts } from './reconciler.ts'
import type { DeployContext, DeployedApp, DeployStep } from './work.ts'

/** Why what runs so has to be on the server of Portreeve; undefined where it need not. */
export function staysBecause(
  { preview_id }: Pick<DeployedApp, 'preview_id'>,
  { stack, mounts }: Pick<ReleaseSettings, 'stack' | 'mounts'>,
): string | undefined {
  if (stack) return 'The services of a compose file run on the server of Portreeve.'
  if (preview_id !== null) return 'Previews run on the server of Portreeve.'
  return (mounts?.volumes ?? []).length > 0
    ? 'The app mounts a volume, and volumes are on the server of Portreeve.'
    : undefined
}

/** The server for a release that is about to be made; the log says which, where there are several. */
export async function placeRelease(
  context: DeployContext,
  { payload: { deployment_id, app_id } }: Pick<DeployStep, 'payload'>,
  settings: ReleaseSettings,
): Promise<string | null> {
  const app = context.apps.get(app_id)
  const live = app.live_release_id ? context.releases.find(app.live_release_id) : undefined
  const node_id = await context.ports.servers.place({
    app_id,
    pin: app.node_id,
    stays: staysBecause(app, settings),
    needs: sharesOfProcesses(settings),
    current: live?.node_id,
  })
  if (node_id !== (live?.node_id ?? null))
    context.logs.append(
      deployment_id,
      'build',
      'system',
      `It runs on the server ${context.ports.servers.nameOf(node_id)}.`,
    )
  return node_id
}

/** Fails a deployment whose server was lost or emptied after it was placed: the next one is placed elsewhere. */
export function requireServer(context: DeployContext, { node_id }: Pick<Release, 'node_id'>): void {
  if (context.ports.servers.canRun(node_id)) return
  throw new Fatal(
    'node_unreachable',
    `The server ${context.ports.servers.nameOf(node_id)} does not answer, or takes no work any more.`,
    'Deploy again: the app is placed on another server, unless it is pinned to this one.',
  )
}

/** What is on added servers now, read from the rows. */
export const createPlaced = (
  { releases }: Pick<DeployContext, 'releases'>,
  { desired, busy, releasesAtWork }: Pick<ReconcilerPorts, 'desired' | 'busy' | 'releasesAtWork'>,
) => ({
  placed() {
    if (!releases.anyPlaced()) return []
    const apps = new Map(desired().map((app) => [app.release_id, app.id]))
    return releases.placed([...apps.keys()]).map(({ id, node_id }) => {
      const app_id = apps.get(id)!
      return { app_id, node_id, is_busy: busy(app_id) }
    })
  },
  isBeingPlaced: (node_id: string): boolean =>
    releases.placed([...releasesAtWork()]).some((release) => release.node_id === node_id),
  nodeOf(release_id: string, app_id?: string): string | null | undefined {
    const place = releases.placeOf(release_id)
    return place && (app_id === undefined || place.app_id === app_id ? place.node_id : null)
  },
})
