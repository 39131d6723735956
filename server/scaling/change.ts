import { totalmem } from 'node:os'
import { CORES } from '#server/kernel/cores'
import type { Limits, Processes } from '#server/apps/configuration-schema'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { Actor } from '#server/kernel/access'
import { conflict, invalid } from '#server/kernel/errors'
import type { ReleaseSize, ScaledApp, ScalingContext } from './context.ts'
import type { ReleaseScaleRow } from './repository.ts'
import type { Reservations, ScalingChange } from './schema.ts'
import { sizesAfter } from '#server/kernel/sizes'
import type { Sleep } from './sleep.ts'

/** Reservations after a change: null takes one away. */
function reservedAfter(before: Reservations, change: ScalingChange['reservations']): Reservations {
  const after = { ...before, ...change }
  return Object.fromEntries(Object.entries(after).filter(([, value]) => value !== null))
}

/** Answers `PUT /api/apps/:id/scaling`. */
export function changeScale(context: ScalingContext, sleep: Pick<Sleep, 'fallAsleep' | 'wake'>) {
  const { db, repository, ports, audit } = context

  const check = (app: ScaledApp, body: ScalingChange, size: ReleaseSize | undefined): void => {
    if (app.status === 'deleting') throw conflict('Cannot scale an app while it is being deleted.')
    const { rule } = repository.find(app.id)
    if (body.replicas !== undefined && size && !size.has_web)
      throw conflict('The app has no web process. Scale its other processes under processes.')
    if (body.sleep_after_s && size && !size.has_web)
      throw conflict('An app without a web process cannot sleep: nothing would wake it.')
    if (body.replicas === 0 && app.status !== 'running')
      throw conflict(`Only an app that runs can be put to sleep; this one is ${app.status}.`)
    if (body.replicas) {
      ports.requireReplicas(app.id, body.replicas)
      if (rule && (body.replicas < rule.min || body.replicas > rule.max))
        throw invalid(
          'replicas',
          `must lie between ${rule.min} and ${rule.max}, the bounds of the app's rule; change or remove the rule first.`,
        )
    }
    const known = { ...size?.processes, ...app.configuration.processes }
    for (const name of Object.keys(body.processes ?? {})) {
      if (name === MAIN_PROCESS) throw invalid('processes.web', 'is scaled by replicas and limits.')
      if (!Object.hasOwn(known, name))
        throw invalid(`processes.${name}`, 'is not a process of this app. Deploy it first.')
    }
  }
  /** What is kept for each instance must be within its limits, and all of it within the server. */
  const checkReserved = (app: ScaledApp, reserved: Reservations, limits: Limits, count: number): void => {
    const most = { ...ports.defaultLimits(), ...context.liveSize(app)?.limits, ...limits }
    for (const name of ['cpus', 'memory_bytes'] as const)
      if ((reserved[name] ?? 0) > most[name])
        throw invalid(`reservations.${name}`, `is more than the limit of an instance, ${most[name]}.`)
    const all = { cpus: 0, memory_bytes: 0 }
    const add = (one: Reservations, instances: number) => {
      all.cpus += (one.cpus ?? 0) * instances
      all.memory_bytes += (one.memory_bytes ?? 0) * instances
    }
    for (const row of repository.reserving()) {
      const other = row.app_id === app.id ? undefined : ports.app(row.app_id)
      if (other) add(row.reservations, context.countOf(other))
    }
    add(reserved, count)
    if (all.cpus > CORES)
      throw conflict(`All reservations together would be ${all.cpus} CPU cores, and the server has ${CORES}.`)
    if (all.memory_bytes > totalmem())
      throw conflict(
        `All reservations together would be ${all.memory_bytes} bytes of memory, and the server has ${totalmem()}.`,
      )
  }

  /** Puts the change to the app and to every release of it that runs or is about to. */
  const store = (app: ScaledApp, body: ScalingChange, reserved: Reservations): void => {
    const { replicas, limits, processes, sleep_after_s } = body
    const { rule } = repository.find(app.id)
    const next = sizesAfter(app.configuration, body)
    const touches_release = replicas || limits || processes
    ports.resize(
      app.id,
      {
        ...(replicas ? { replicas } : {}),
        ...(limits ? { limits: next.limits } : {}),
        ...(processes ? { processes: next.processes } : {}),
      },
      () => {
        if (touches_release)
          for (const id of ports.currentReleases(app.id)) {
            const known: ReleaseScaleRow = repository.scaleOf(id) ?? {
              replicas: null,
              limits: {},
              processes: {},
            }
            const after = sizesAfter({ limits: known.limits, processes: known.processes as Processes }, body)
            repository.setScale(id, app.id, { replicas: replicas || known.replicas, ...after })
          }
        repository.change(app.id, {
          reservations: reserved,
          ...(sleep_after_s === undefined ? {} : { sleep_after_s }),
          ...(rule && replicas ? { decided: replicas } : {}),
        })
      },
    )
  }

  return (actor: Actor, app_id: string, body: ScalingChange): void => {
    ports.requireEngine()
    db.tx(() => {
      const app = context.app(app_id)
      const row = repository.find(app_id)
      check(app, body, context.liveSize(app))
      const from = row.state === 'asleep' ? 0 : context.countOf(app)
      const reserved = reservedAfter(row.reservations, body.reservations)
      const awake = body.replicas || context.countOf(app)
      if (Object.keys(reserved).length > 0)
        checkReserved(app, reserved, { ...app.configuration.limits, ...body.limits }, awake)
      store(app, body, reserved)
      const to = body.replicas ?? from
      const detail = `${actor.name} asked for it.`
      audit.record(actor, {
        action: 'app.scale',
        resource_type: 'app',
        resource_id: app_id,
        project_id: app.project_id,
        before: {
          replicas: from,
          limits: app.configuration.limits,
          reservations: row.reservations,
          sleep_after_s: row.sleep_after_s,
        },
        after: { ...body },
      })
      ports.note(
        app.id,
        'app.scaled',
        { reason: 'manual', from, to, changed: Object.keys(body).sort() },
        actor,
      )
      if (body.replicas === 0) {
        if (row.state !== 'asleep') sleep.fallAsleep(app, actor, 'manual', detail)
        return
      }
      if (body.replicas && row.state === 'asleep') return sleep.wake(app, 'manual', detail)
      if (to !== from)
        repository.record({
          app_id,
          at: context.clock.iso(),
          reason: 'manual',
          metric: null,
          value: null,
          target: null,
          from,
          to,
          outcome: 'applied',
          detail,
        })
      db.afterCommit(() => context.apply(app_id))
    })
  }
}
