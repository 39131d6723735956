import type { InferOutput } from 'valibot'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, forbidden, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { createPace } from '#server/kernel/pace'
import type { ServiceVariable, StackRuntime } from '#server/deployments/stack/runtime'
import { generate, isGenerated } from './generated.ts'
import { createServiceRepository, type ServiceRow } from './repository.ts'
import type { Service, ServiceHealth } from './schema.ts'

type Health = InferOutput<typeof ServiceHealth>
interface App {
  id: string
  project_id: string
  status: string
}

export interface ServicePorts {
  app(id: string): App | undefined
  /** What runs of compose apps. */
  stack: StackRuntime
  /** Where a service answers; `null` stands for the one that has the app's own name. */
  address(app_id: string, service: string | null): { hostname: string; url: string } | undefined
  requireEngine(): void
  /** Whether a job of the app is queued or under way. */
  isBusy(app_id: string): boolean
}
export interface ServiceOptions {
  db: Db
  clock: Clock
  events: Events
  audit: AuditTrail
  ports: ServicePorts
}

/** Services of compose apps: what they are, how they fare, and single ones started and stopped. */
export function createStackServices({ db, clock, events, audit, ports }: ServiceOptions) {
  const repository = createServiceRepository(db)
  const get = (id: string): ServiceRow => {
    const row = repository.find(id)
    if (!row) throw notFound('service')
    return row
  }
  const appOf = (row: ServiceRow): App => {
    const app = ports.app(row.app_id)
    if (!app) throw notFound('service')
    return app
  }
  const isMeantToRun = (row: ServiceRow, { status }: App): boolean =>
    row.stopped === 0 && (status === 'running' || status === 'crashed')

  const stateOf = async (row: ServiceRow, app: App): Promise<Service['status']> => {
    if (row.stopped === 0 && app.status === 'building') return 'starting'
    if (!isMeantToRun(row, app)) return 'stopped'
    if (!ports.stack.find(app.id, row.name)) return 'starting'
    const instances = await ports.stack.instances(app.id, row.name)
    if (instances.some(({ state }) => state === 'running')) return 'running'
    return instances.length === 0 && ports.isBusy(app.id) ? 'starting' : 'crashed'
  }
  const addressOf = (app: App, name: string) => {
    const found = ports.stack.find(app.id, name)
    if (!found || found.service.public_port === null) return undefined
    return ports.address(app.id, found.is_main ? null : name) ?? ports.address(app.id, name)
  }
  const view = async (row: ServiceRow): Promise<Service> => {
    const app = appOf(row)
    const found = ports.stack.find(app.id, row.name)
    const { id, app_id, project_id, name, created_at, updated_at } = row
    return {
      id,
      app_id,
      project_id,
      name,
      status: await stateOf(row, app),
      image: found?.service.reference ?? null,
      public_port: found?.service.public_port ?? null,
      url: addressOf(app, name)?.url ?? null,
      internal_host: name,
      replicas: found?.service.replicas ?? 0,
      stateful: found?.service.volumes.some(({ read_only }) => !read_only) ?? false,
      deployment_id: found?.deployment_id ?? null,
      created_at,
      updated_at,
    }
  }
  const record = (actor: Actor, action: string, row: ServiceRow) =>
    audit.record(actor, {
      action: `service.${action}`,
      resource_type: 'service',
      resource_id: row.id,
      project_id: row.project_id,
      after: { app_id: row.app_id, name: row.name },
    })
  const note = (actor: Actor, type: string, row: ServiceRow) =>
    events.append({
      type,
      project_id: row.project_id,
      app_id: row.app_id,
      actor_id: actor.user_id || null,
      payload: { service_id: row.id, app_id: row.app_id, name: row.name },
    })
  /** Throws unless a single service can be changed now. */
  const requireReady = (row: ServiceRow): App => {
    ports.requireEngine()
    const app = appOf(row)
    if (app.status !== 'running' && app.status !== 'crashed')
      throw conflict(`The app is ${app.status}: single services are started and stopped while it runs.`)
    if (ports.isBusy(app.id))
      throw conflict('The app is being deployed, started or stopped. Wait for it, or cancel the deployment.')
    if (!ports.stack.find(app.id, row.name))
      throw conflict('This service has no live release yet. Deploy the app.')
    return app
  }
  const setStopped = (actor: Actor, id: string, stopped: boolean): ServiceRow =>
    db.tx(() => {
      const row = get(id)
      const app = requireReady(row)
      if (!repository.setStopped(id, stopped, clock.iso()))
        throw conflict(stopped ? 'The service is stopped already.' : 'The service is not stopped.')
      ports.stack.enqueue(stopped ? 'service.stop' : 'service.start', app, row.name)
      record(actor, stopped ? 'stop' : 'start', row)
      note(actor, stopped ? 'service.stopped' : 'service.started', row)
      return get(id)
    })

  return {
    /** In pieces: for each of sixty its app is read, whose compose file may have 256 KiB, and its release. */
    async list(app_id: string): Promise<Service[]> {
      const pace = createPace(app_id)
      const views: Promise<Service>[] = []
      for (const row of repository.ofApp(app_id)) {
        const begun = view(row)
        // One that fails meanwhile is heard of below.
        begun.catch(() => undefined)
        views.push(begun)
        await pace.rest()
      }
      return Promise.all(views)
    },
    get: (id: string): Promise<Service> => view(get(id)),
    url(id: string) {
      const row = get(id)
      const app = appOf(row)
      const address = addressOf(app, row.name)
      return {
        id,
        url: address?.url ?? null,
        hostname: address?.hostname ?? null,
        public_port: ports.stack.find(app.id, row.name)?.service.public_port ?? null,
        internal_host: row.name,
      }
    },
    async status(id: string) {
      const row = get(id)
      const app = appOf(row)
      const state = await stateOf(row, app)
      const instances = state === 'stopped' ? [] : await ports.stack.instances(app.id, row.name)
      const running = instances.filter((instance) => instance.state === 'running')
      const replicas = row.stopped ? 0 : (ports.stack.find(app.id, row.name)?.service.replicas ?? 0)
      const is_whole = running.length > 0 && running.length >= replicas
      const is_healthy = is_whole && (await ports.stack.isHealthy(app.id, row.name))
      const unwell: Health = state === 'starting' || state === 'stopped' ? state : 'unhealthy'
      const health: Health = is_healthy && state === 'running' ? 'healthy' : unwell
      return { id, state, health, replicas, running: running.length, instances }
    },
    credentials(actor: Actor, id: string) {
      if (actor.scope !== 'full')
        throw forbidden('A narrowed API key may not read secrets. Use one with full rights.')
      const row = get(id)
      const used: ServiceVariable[] = ports.stack.variables(row.app_id, row.name)
      const shown = used.filter(({ name, secret }) => secret || isGenerated(name))
      record(actor, 'credentials', row)
      return {
        id,
        credentials: shown.map(({ name, value }) => ({ name, value, generated: isGenerated(name) })),
      }
    },
    start: async (actor: Actor, id: string) => view(setStopped(actor, id, false)),
    stop: async (actor: Actor, id: string) => view(setStopped(actor, id, true)),
    async restart(actor: Actor, id: string) {
      const row = get(id)
      db.tx(() => {
        requireReady(row)
        if (row.stopped) throw conflict('The service is stopped. Start it.')
        ports.stack.restart(actor, row.app_id, row.name)
        record(actor, 'restart', row)
        note(actor, 'service.restarted', row)
      })
      return view(row)
    },
    /** Names that the services of an app have; with `only`, others of it go. */
    keep(app_id: string, project_id: string, names: readonly string[], only: boolean): void {
      const at = clock.iso()
      db.tx(() => {
        const known = repository.ofApp(app_id)
        for (const name of names)
          repository.insert({ id: newId('svc'), app_id, project_id, name, created_at: at, updated_at: at })
        if (only) for (const row of known) if (!names.includes(row.name)) repository.delete(row.id)
      })
    },
    /** Services that somebody has stopped. */
    stopped: (app_id: string): ReadonlySet<string> =>
      new Set(repository.ofApp(app_id).flatMap(({ name, stopped }) => (stopped ? [name] : []))),
    /** A deployment or a start of the app has started all of them. */
    started: (app_id: string): void => void repository.startedAll(app_id, clock.iso()),
    generate,
    moved(app_id: string): void {
      const app = ports.app(app_id)
      if (app) repository.move(app_id, app.project_id)
    },
  }
}
export type StackServices = ReturnType<typeof createStackServices>
