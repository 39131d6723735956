import { checkedCompose, keptServices } from '#server/compose/checked'
import { type Actor, authorize, projectRole, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { type Wanted, wantedValues } from '#server/kernel/page'
import {
  changedColumns,
  changedSettings,
  checkSource,
  configurationOf,
  newColumns,
  type SourceChecks,
} from './configuration.ts'
import { createCopies } from './copies.ts'
import { createResize } from './resize.ts'
import { createAppShares, type SharePorts } from './shares.ts'
import { type AppEventName, appMachine } from './machine.ts'
import { type AppRow, createAppRepository } from './repository.ts'
import type { App, AppChange, AppStatus, NewApp } from './schema.ts'
import { audited } from './audited.ts'
import { createDiscard, type DiscardPorts } from './discard.ts'
import { createPendingChanges, type PendingPorts } from './pending.ts'
import { createPins, type PinPorts, requirePin } from './pins.ts'
import { createAppView, type ViewPorts } from './view.ts'
import { createPreviewApps, requireNoPreview } from './preview-apps.ts'

/** What apps need from other domains; handed in at composition. */
export interface AppPorts extends SharePorts, ViewPorts, PendingPorts, DiscardPorts, PinPorts {
  mounts(app_id: string): { id: string; path: string; kind: string }[]
  /** Throws 409 when the project may not have one more app. */
  requireQuota(project_id: string): void
  /** Queues the first deployment in the current transaction. */
  deploy(app: AppRow, actor: Actor): void
  /** Queues a restart of the live release in the current transaction. */
  restart(app: AppRow, actor: Actor): void
  /** Tells which services an app has, before anything of it runs. */
  keepServices(app: AppRow, names: readonly string[]): void
  /** Whether a job of the app is queued or under way. */
  isBusy(app_id: string): boolean
  /** Whether a deployment of the app is queued or under way. */
  isDeploying(app_id: string): boolean
  /** Whether one is that has no traffic yet. */
  isMaking(app_id: string): boolean
  /** Ends the soak of the release that serves, so that a stop need not wait for it. */
  endSoak(app_id: string): void
  /** Hears, in the transaction of the request, that an app is to be deleted. */
  deleting(app_id: string): void
  /** Throws 409 while the app names something that stays in its project. */
  requireMovable(app: AppRow): void
  addAutomaticDomain(app: AppRow): void
  renameAutomaticDomain(app: AppRow): void
  /**
   * Takes along what belongs to the app; throws 409 when it cannot be in the project that the app has just
   * moved to.
   */
  moved(app_id: string, from_project_id: string): void
  /** Queues stop, start or delete in the current transaction; the job that does it. */
  enqueue(
    kind: 'app.stop' | 'app.start' | 'app.delete',
    app: AppRow,
    more?: { volumes?: boolean; was?: string; backup_id?: string | null },
  ): string
  /** Throws 409 when the instances that the app is to have cannot share its volumes. */
  requireReplicas(app_id: string): void
  /** Notes in the current transaction that a last copy of the app is due; answers its id. */
  planFinalBackup(app: AppRow, actor: Actor, options: { volumes: boolean }): string
  cancelDeployments(app_id: string): void
  /** Applies the app's domains to the edge after the commit. */
  refreshRoutes(app_id: string): void
  /** Throws ENGINE_UNAVAILABLE when the engine does not answer. */
  requireEngine(): void
}
export interface AppOptions {
  db: Db
  clock: Clock
  events: Events
  audit: AuditTrail
  checks: SourceChecks
  ports: AppPorts
}

export function createApps(options: AppOptions) {
  const { db, clock, events, audit, checks, ports } = options
  const repository = createAppRepository(db)
  const shares = createAppShares(repository, ports)

  const get = (id: string): AppRow => orThrow(repository.find(id), () => notFound('app'))
  const note = (app: AppRow, type: string, payload: Record<string, unknown> = {}, actor?: Actor) =>
    events.append({
      type,
      project_id: app.project_id,
      app_id: app.id,
      actor_id: actor?.user_id || null,
      payload: { app_id: app.id, name: app.name, status: app.status, ...payload },
    })

  const view = createAppView(ports)
  const pending = createPendingChanges(ports)

  /** Moves the status by an event of the machine; compare-and-set, told to subscribers when it changed. */
  const transition = (id: string, event: AppEventName, payload: Record<string, unknown> = {}): AppStatus => {
    const row = get(id)
    const next = appMachine.next(row.status, event)
    if (next === row.status) {
      // What became of the last deployment says more of an app that nothing serves than that nothing does.
      if (next === 'failed' && typeof payload.error === 'string') repository.setLastError(id, payload.error)
      return next
    }
    if (!repository.setStatus(id, row.status, next, clock.iso()))
      throw conflict('The app has changed meanwhile. Try again.')
    if (next === 'running') repository.setLastError(id, null)
    else if (typeof payload.error === 'string') repository.setLastError(id, payload.error)
    // What has never served has a page that says how far it is.
    if (!row.live_release_id && next !== 'deleting') db.afterCommit(() => ports.refreshRoutes(id))
    note({ ...row, status: next }, `app.${next}`, { from: row.status, ...payload })
    return next
  }

  const lifecycle = (actor: Actor, id: string, event: 'stop' | 'start') =>
    db.tx(() => {
      ports.requireEngine()
      const row = get(id)
      appMachine.next(row.status, event)
      if (event === 'stop' ? ports.isMaking(id) : ports.isDeploying(id))
        throw conflict(`Cannot ${event} an app while a deployment is under way. Wait for it or cancel it.`)
      if (event === 'start' && !row.live_release_id)
        throw conflict('This app has never been live, so there is nothing to start. Deploy it.')
      transition(id, event)
      const job_id = ports.enqueue(`app.${event}`, row, event === 'start' ? { was: row.status } : {})
      if (event === 'stop') db.afterCommit(() => ports.endSoak(id))
      audit.record(actor, {
        action: `app.${event}`,
        resource_type: 'app',
        resource_id: id,
        project_id: row.project_id,
      })
      return { ...view(get(id)), job_id }
    })

  const update = (actor: Actor, id: string, body: AppChange): App => {
    checkSource(body, checks)
    return db.tx(() => {
      const before = get(id)
      if (before.status === 'deleting') throw conflict('Cannot change an app while it is being deleted.')
      requireNoPreview(before)
      if (body.name !== undefined && body.name !== before.name && repository.findByName(body.name))
        throw conflict(`An app named ${body.name} exists already. Choose another name.`)
      const columns = changedColumns(before, body)
      shares.within(before.project_id, () => repository.update(id, columns, clock.iso()))
      if (body.replicas !== undefined || body.processes !== undefined) ports.requireReplicas(id)
      const row = get(id)
      if (body.node_id !== undefined) requirePin(row, ports)
      if (row.name !== before.name) {
        ports.renameAutomaticDomain(row)
        db.afterCommit(() => ports.refreshRoutes(id))
      }
      note(row, 'app.updated', { changed: changedSettings(before, row) }, actor)
      audit.record(actor, {
        action: 'app.update',
        resource_type: 'app',
        resource_id: id,
        project_id: row.project_id,
        before: audited(before),
        after: audited(row),
      })
      return view(row)
    })
  }

  return {
    ...createCopies({ db, clock, audit, checks, ports, repository, shares, get, note, transition }),
    view,
    transition,
    note,
    find: repository.find,
    /** The app as a deployment sees it. */
    deployed(id: string) {
      const row = repository.find(id)
      if (!row) return undefined
      const { name, project_id, status, live_release_id, live_deployment_id, soak_seconds, node_id } = row
      return {
        id,
        name,
        project_id,
        preview_id: row.preview_id,
        status,
        live_release_id,
        live_deployment_id,
        soak_seconds,
        auto_deploy: row.auto_deploy === 1,
        ssh_key_id: row.ssh_key_id,
        git_credential_id: row.git_credential_id,
        node_id,
        configuration: configurationOf(row),
      }
    },
    /** Apps that should serve now: id and live release. */
    desired: repository.desired,
    /** Every app that has host names, with the release that serves, if one does. */
    routed: repository.routed,
    /** Where apps come from, of one project or of all: for what uses a key or a login. */
    sources: (project_id?: string) => repository.sources(project_id),
    projectOf: repository.projectOf,
    isNameTaken: (name: string) => repository.findByName(name) !== undefined,
    list(
      actor: Actor,
      filter: { id?: Wanted; project_id?: Wanted; status?: Wanted; q?: string },
      paging: Paging,
    ) {
      const projects =
        wantedValues(filter.project_id)?.filter((id) => projectRole(actor, id)) ?? visibleProjects(actor)
      const { rows, total } = repository.page(projects, filter, ...limits(paging))
      return paged(
        {
          total,
          rows: rows.map((row) => ({ ...row, domain: ports.automaticDomain(row.id).hostname })),
        },
        paging,
      )
    },
    get: (id: string) => view(get(id)),
    /** What its next deployment changes. */
    pending: (id: string) => pending(get(id)),
    shares,
    ...createPins({ db, clock, audit, repository, ports, note, transition }),
    previews: createPreviewApps(options, repository, shares),
    /** What can be found out of a request only by reading a compose file; to be handed on with it. */
    servicesOf: async ({ compose }: { compose?: string }) =>
      compose === undefined ? [] : keptServices(await checkedCompose(compose)),
    /** @param services names that `servicesOf` answered. */
    create(
      actor: Actor,
      project_id: string,
      body: NewApp,
      services: readonly string[] = [],
      is_template = false,
    ): App {
      checkSource(body, checks)
      const columns = newColumns(newId('app'), project_id, body, clock.iso())
      if (is_template) columns.source = 'template'
      if (columns.source !== 'upload') ports.requireEngine()
      return db.tx(() => {
        if (repository.findByName(body.name))
          throw conflict(`An app named ${body.name} exists already. Choose another name.`)
        ports.requireQuota(project_id)
        shares.within(project_id, () => repository.insert(columns))
        const row = get(columns.id)
        requirePin(row, ports)
        // One that says so has no web process, and nothing to give a name to.
        if (body.processes?.web?.replicas !== 0) ports.addAutomaticDomain(row)
        // Before anything serves there, it says that the app is being made.
        db.afterCommit(() => ports.refreshRoutes(row.id))
        if (services.length > 0) ports.keepServices(row, services)
        note(row, 'app.created', {}, actor)
        audit.record(actor, {
          action: 'app.create',
          resource_type: 'app',
          resource_id: row.id,
          project_id,
          after: audited(row),
        })
        if (row.source !== 'upload') ports.deploy(row, actor)
        return view(get(row.id))
      })
    },
    update,
    /** Puts back what the live release has of one field or variable. */
    discard: createDiscard({ ports, get, pending, update }),
    resize: createResize({ repository, shares, clock, get }),
    start: (actor: Actor, id: string) => lifecycle(actor, id, 'start'),
    stop: (actor: Actor, id: string) => lifecycle(actor, id, 'stop'),
    move(actor: Actor, id: string, project_id: string): App {
      authorize(actor, 'owner', { project_id, noun: 'project' })
      return db.tx(() => {
        const before = get(id)
        requireNoPreview(before)
        if (before.project_id === project_id) return view(before)
        if (ports.isBusy(id))
          throw conflict(
            'Cannot move an app while it is deployed, started or stopped. Wait for it, or cancel the deployment.',
          )
        ports.requireMovable(before)
        ports.requireQuota(project_id)
        shares.within(project_id, () => repository.move(id, project_id, clock.iso()))
        ports.moved(id, before.project_id)
        const row = get(id)
        note(row, 'app.moved', { from: before.project_id, to: project_id }, actor)
        // Each of the two projects finds in its own trail that the app left or came.
        for (const trail of [before.project_id, project_id])
          audit.record(actor, {
            action: 'app.move',
            resource_type: 'app',
            resource_id: id,
            project_id: trail,
            before: { project_id: before.project_id },
            after: { project_id },
          })
        if (row.live_release_id && (row.status === 'running' || row.status === 'crashed'))
          ports.restart(row, actor)
        return view(row)
      })
    },
    /** Records which release serves; part of the switch of a deployment. */
    setLive: (id: string, deployment_id: string | null, release_id: string | null) =>
      repository.setLive(id, deployment_id, release_id, clock.iso()),
    setAutoDeploy: (id: string, on: boolean) =>
      repository.update(id, { auto_deploy: Number(on) }, clock.iso()),
    nextNumber: repository.nextNumber,
    /** Removes the row at the end of a deletion; everything that belongs to it goes with it. */
    remove(id: string) {
      const row = repository.find(id)
      if (!row) return
      repository.delete(id)
      events.append({
        type: 'app.deleted',
        project_id: row.project_id,
        app_id: id,
        payload: { app_id: id, name: row.name },
      })
    },
  }
}
export type Apps = ReturnType<typeof createApps>
