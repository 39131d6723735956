import { ensureNetworks } from './release-workload.ts'
import type { Release } from './releases.ts'
import { NOTHING } from './routing.ts'
import { drain, routeTo, untilAlone } from './serving.ts'
import { startAgain, untilReadyAgain } from './stack/again.ts'
import { endRelease, hasImages, makersOf, superviseAll } from './stack/ending.ts'
import type { DeployedApp, DeployContext } from './work.ts'

/** Apps in these states have nothing running, and nothing of them is started by the way. */
const AT_REST = new Set(['stopped', 'stopping', 'deleting', 'building'])

/**
 * Apps that run on volumes, for work on what is in these. To be called from a job in the lane of
 * the app, so that neither a deployment nor the reconciler comes in between.
 */
export function createHolders(
  context: DeployContext,
  apps: (project_id: string) => readonly { id: string }[],
) {
  const { engine, releases } = context
  const liveOf = (app: DeployedApp): Release | undefined =>
    app.live_release_id ? releases.find(app.live_release_id) : undefined
  const liveOfApp = (app_id: string) =>
    context.apps.projectOf(app_id) === undefined ? undefined : liveOf(context.apps.get(app_id))
  const volumesIn = (release: Release | undefined): string[] =>
    (release?.settings.mounts?.volumes ?? []).map(({ volume_id }) => volume_id)
  const volumesOf = (app_id: string): string[] => volumesIn(liveOfApp(app_id))

  /** For how much work each app stands still. */
  const standing = new Map<string, number>()
  async function setPaused(app_id: string, paused: boolean): Promise<void> {
    const release = liveOfApp(app_id)
    if (!release) return
    for (const maker of makersOf(release)) await engine.pauseRelease(maker, paused)
  }

  return {
    /** Ids of the volumes that the live release of an app mounts. */
    volumesOf,
    /** Ids of the apps whose live release mounts one of these volumes. */
    of: (project_id: string, volume_ids: readonly string[]): string[] =>
      apps(project_id)
        .map(({ id }) => id)
        .filter((id) => volumesOf(id).some((held) => volume_ids.includes(held))),
    /**
     * Lanes of the apps that run on one of these volumes or are about to: with all of them held,
     * none of them starts on data that are replaced meanwhile.
     */
    lanesOf(project_id: string, volume_ids: readonly string[]): string[] {
      const about_to = [...context.ports.releasesAtWork()]
        .flatMap((id) => releases.find(id) ?? [])
        .filter((release) => volumesIn(release).some((held) => volume_ids.includes(held)))
        .map(({ app_id }) => app_id)
      return [...new Set([...this.of(project_id, volume_ids), ...about_to])].map((app_id) => `app:${app_id}`)
    },
    /** Lets the instances of an app stand still until `goOn`, which has to follow whatever becomes of this. */
    async standStill(app_id: string): Promise<void> {
      standing.set(app_id, (standing.get(app_id) ?? 0) + 1)
      await setPaused(app_id, true)
    },
    /** Lets them go on. Never throws: what the engine cannot do now, the reconciler does once it can. */
    async goOn(app_id: string): Promise<void> {
      const others = (standing.get(app_id) ?? 1) - 1
      if (others > 0) return void standing.set(app_id, others)
      standing.delete(app_id)
      await setPaused(app_id, false).catch((error: unknown) =>
        context.log.warn('An app stands still for now', { app: app_id, error }),
      )
    },
    /** Whether something is under way for which an app stands still. */
    standsStill: (app_id: string): boolean => standing.has(app_id),
    /** Lets every instance of an app go on that was left paused. */
    async resumeAll(): Promise<void> {
      const paused = (await engine.instances({})).filter(({ state }) => state === 'paused')
      for (const release_id of new Set(paused.map((instance) => instance.release_id)))
        await engine.pauseRelease(release_id, false)
    },
    /** Ends the traffic of an app, then its instances. Idempotent. */
    async halt(app_id: string, signal: AbortSignal): Promise<void> {
      const release = liveOfApp(app_id)
      if (!release) return
      await untilAlone(context, app_id)
      await context.routing.serve(app_id, NOTHING)
      await drain(context, release, signal)
      await endRelease(engine, release, undefined)
    },
    /**
     * Starts the live release of an app, and gives it the traffic once it answers. Idempotent.
     * Throws when an app that ran before does not come up; one that did not is left to the
     * reconciler.
     */
    async bring(app_id: string, signal: AbortSignal): Promise<void> {
      const release = liveOfApp(app_id)
      if (!release) return
      const app = context.apps.get(app_id)
      if (AT_REST.has(app.status)) return
      // On another machine than before nothing of it is here: a deployment makes it.
      if (!(await hasImages(engine, release))) return
      // It saw the instances end that only the app's own job keeps it away from, and knew the data
      // of before.
      await untilAlone(context, app_id)
      await ensureNetworks(engine, release, app)
      const again = { release, stopped: context.ports.services.stopped(app_id) }
      try {
        await startAgain(context, again, signal)
        await untilReadyAgain(context, again, signal)
      } catch (error) {
        if (app.status === 'running' || signal.aborted) throw error
        await superviseAll(engine, release, true)
        return
      }
      await routeTo(context, app_id, release)
      await superviseAll(engine, release, true)
      if (app.status !== 'running') context.apps.transition(app_id, 'go_live', {})
    },
  }
}
export type Holders = ReturnType<typeof createHolders>
