import type { Actor } from '#server/kernel/access'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { conflict } from '#server/kernel/errors'
import type { DeploymentRow } from '../repository.ts'
import type { Release, ReleaseService } from '../releases.ts'
import type { Runtime } from '../runtime.ts'
import type { DeployContext } from '../work.ts'
import { variablesOf } from './build.ts'
import { checkHealth } from './ready.ts'
import type { ServicePayload } from './service-jobs.ts'
import { openedService } from './words.ts'

export interface ServiceVariable {
  name: string
  value: string
  secret: boolean
}
/** What runs of a compose app, service by service. */
export interface StackRuntime {
  /** A service as the live release has it. */
  find(
    app_id: string,
    name: string,
  ): { service: ReleaseService; is_main: boolean; deployment_id: string | null } | undefined
  instances(app_id: string, name: string): ReturnType<Runtime['instances']>
  /** Whether the health check of the file succeeds in every instance; true where it has none. */
  isHealthy(app_id: string, name: string): Promise<boolean>
  /** Variables of the app that the service uses, as the live release has them. */
  variables(app_id: string, name: string): ServiceVariable[]
  /** Queues a start or stop in the current transaction. */
  enqueue(kind: 'service.start' | 'service.stop', app: { id: string; project_id: string }, name: string): void
  /** Queues a deployment that makes only this service anew. */
  restart(actor: Actor, app_id: string, name: string): void
}

/** An answer of a health check holds for so long: whoever asks again does not run it again. */
const KEPT_MS = 5000
const TIMEOUT_MS = 5000

export function createStackRuntime(
  context: DeployContext,
  {
    runtime,
    jobs,
    restart,
  }: {
    runtime: Pick<Runtime, 'instances'>
    jobs: Jobs
    restart(actor: Actor, app_id: string, services: string[]): DeploymentRow
  },
): StackRuntime {
  const seen = new Map<string, { at_ms: number; healthy: Promise<boolean> }>()
  const releaseOf = (app_id: string) => context.releases.find(context.apps.get(app_id).live_release_id ?? '')
  const serviceOf = (app_id: string, name: string) => {
    const release = releaseOf(app_id)
    const service = release?.settings.stack?.find((one) => one.name === name)
    return release && service && { release, service }
  }
  const instances = async (app_id: string, name: string) => {
    const found = serviceOf(app_id, name)
    if (!found) return []
    const made_by = context.releases.find(found.service.made_by)?.deployment_id
    const all = await runtime.instances(app_id)
    return all.filter(({ process, deployment_id }) => process === name && deployment_id === made_by)
  }
  const check = async (app_id: string, name: string, release: Release, service: ReleaseService) => {
    const { health_check } = openedService(context.releases, release, service)
    if (!health_check) return true
    const asked = { ...health_check, timeout_ms: Math.min(health_check.timeout_ms, TIMEOUT_MS) }
    const running = (await instances(app_id, name)).filter(({ state }) => state === 'running')
    const results = await Promise.all(
      running.map(({ id }) => checkHealth(context.engine, id, asked, new AbortController().signal)),
    )
    return results.every(({ ready }) => ready)
  }

  return {
    instances,
    find(app_id, name) {
      const found = serviceOf(app_id, name)
      if (!found) return undefined
      const { release, service } = found
      const maker = context.releases.find(service.made_by)
      return { service, is_main: release.settings.main === name, deployment_id: maker?.deployment_id ?? null }
    },
    async isHealthy(app_id, name) {
      const found = serviceOf(app_id, name)
      if (!found) return false
      const key = `${app_id} ${name}`
      const known = seen.get(key)
      if (known && context.clock.monotonic_ms() - known.at_ms < KEPT_MS) return known.healthy
      const healthy = check(app_id, name, found.release, found.service).catch(() => false)
      if (seen.size > 1000) seen.clear()
      seen.set(key, { at_ms: context.clock.monotonic_ms(), healthy })
      return healthy
    },
    variables(app_id, name) {
      const found = serviceOf(app_id, name)
      return found ? variablesOf(found.service, context.releases.variables(found.release.id)) : []
    },
    enqueue: (kind, app, name) =>
      void jobs.enqueue<ServicePayload>({
        kind,
        lane: `app:${app.id}`,
        subject: app.id,
        project_id: app.project_id,
        payload: { app_id: app.id, project_id: app.project_id, service: name },
      }),
    restart(actor, app_id, name) {
      if (!serviceOf(app_id, name)) throw conflict('This service has no live release yet. Deploy the app.')
      restart(actor, app_id, [name])
    },
  }
}
