import { removeTree } from '#server/kernel/removal'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import { redactor } from '#server/kernel/redact'
import { classify } from './classify.ts'
import { requestOf } from './repository.ts'
import { NOTHING } from './routing.ts'
import { drain, routeTo } from './serving.ts'
import { instancesOfRelease } from './processes.ts'
import { ensureNetworks } from './release-workload.ts'
import { startAgain, untilReadyAgain } from './stack/again.ts'
import { endRelease, hasImages, superviseAll } from './stack/ending.ts'
import { secretsOfJobs, type DeployContext } from './work.ts'

export interface LifecyclePayload {
  app_id: string
  project_id: string
  /** With a deletion: the volumes that only this app mounts go as well. */
  volumes?: boolean
  /** With a deletion: the backup that must be whole before anything goes. */
  backup_id?: string | null
  /** With a start or a deletion: what the app was before, which it is again when that fails. */
  was?: string
}
/** Deployments that are looked at in one piece. */
const LOOKED_AT = 100
/** A health check of a compose file may take half an hour. */
const READY_MS = 2_400_000
/** What a start that fails is to an app that was not simply stopped before. */
const FAILED_START = new Map<string, 'crash' | 'lose'>([
  ['crashed', 'crash'],
  ['failed', 'lose'],
])

/** What a start has found out. */
interface StartState {
  /** A deployment makes the image anew and starts the app with it. */
  handed_over?: boolean
}
export interface LifecyclePorts {
  /** Queues a deployment that makes the image of what is live anew and runs it. */
  rebuild(app_id: string): void
  /** Forgets piece by piece what gathered about an app. */
  forgetHistory(app_id: string, signal: AbortSignal): Promise<void>
  removeApp(app_id: string): void
  /** Takes the final backup and answers once it is whole; throws when it cannot be taken. */
  takeFinalBackup(backup_id: string, signal: AbortSignal): Promise<void>
  /** Ends a final backup that was never begun. */
  dropFinalBackup(backup_id: string, error: string): void
  /** Gives an app back its status whose deletion did not begin. */
  keepApp(app_id: string, was: string, error: string): void
  note(app_id: string, type: string, payload: Record<string, unknown>): void
}

/** What an app prints while it starts, and what an engine says about it, may hold the app's secrets. */
const redactIn =
  (context: DeployContext) =>
  ({ subject }: { subject: string }, text: string): string =>
    context.apps.projectOf(subject) === undefined ? text : redactor(secretsOfJobs(context, subject))(text)

/** Ends the traffic, then the instances; the release and its image stay for `start`. */
function stopJob(context: DeployContext): JobDefinition<LifecyclePayload, object> {
  return defineJob<LifecyclePayload, object>({
    kind: 'app.stop',
    initial: () => ({}),
    classify,
    redact: redactIn(context),
    steps: [
      {
        name: 'stop',
        irrevocable: true,
        async run({ payload, signal }) {
          const app = context.apps.get(payload.app_id)
          const release = app.live_release_id ? context.releases.find(app.live_release_id) : undefined
          await context.routing.serve(app.id, NOTHING)
          if (!release) return
          await drain(context, release, signal)
          await endRelease(context.engine, release, undefined)
        },
      },
    ],
    onEnd: (job) => context.apps.transition(job.subject, 'halt', {}),
  })
}

/** Brings the live release back and gives it the traffic once it is ready. */
function startJob(
  context: DeployContext,
  ports: LifecyclePorts,
): JobDefinition<LifecyclePayload, StartState> {
  const live = (app_id: string) => context.releases.find(context.apps.get(app_id).live_release_id ?? '')!
  return defineJob<LifecyclePayload, StartState>({
    kind: 'app.start',
    initial: () => ({}),
    classify,
    redact: redactIn(context),
    steps: [
      {
        name: 'image',
        async run({ payload, state, save, skip }) {
          const release = live(payload.app_id)
          // A release stays where it was placed: on a server that is lost or takes no work, another one has to do.
          const { canRun } = context.ports.servers
          if (canRun(release.node_id) && (await hasImages(context.engine, release))) return skip()
          if (state.handed_over) return
          state.handed_over = true
          save()
          ports.rebuild(payload.app_id)
        },
      },
      {
        name: 'start',
        timeout_ms: READY_MS,
        async run({ payload, signal, state, skip }) {
          if (state.handed_over) return skip()
          const release = live(payload.app_id)
          // Of a crashed app the engine holds instances that it starts again ever later: a start does not
          // wait for that, and sees how they end.
          const left = await instancesOfRelease(context.engine, release)
          if (left.some(({ state }) => state === 'running'))
            await superviseAll(context.engine, release, false)
          else await endRelease(context.engine, release, 0)
          await ensureNetworks(context.engine, release, context.apps.get(payload.app_id))
          await startAgain(context, { release }, signal)
        },
        undo: ({ payload }) => endRelease(context.engine, live(payload.app_id), 0),
      },
      {
        name: 'verify',
        timeout_ms: READY_MS,
        async run({ payload, signal, state, skip }) {
          if (state.handed_over) return skip()
          await untilReadyAgain(context, { release: live(payload.app_id) }, signal)
        },
      },
      {
        name: 'switch',
        irrevocable: true,
        async run({ payload, state, skip }) {
          if (state.handed_over) return skip()
          const release = live(payload.app_id)
          await routeTo(context, payload.app_id, release)
          await superviseAll(context.engine, release, true)
          if (release.settings.stack) context.ports.services.started(payload.app_id)
        },
      },
    ],
    onEnd(job, outcome, { handed_over }) {
      if (outcome.status === 'succeeded')
        return context.apps.transition(job.subject, handed_over ? 'rebuild' : 'rise', {})
      const { was } = JSON.parse(job.payload) as LifecyclePayload
      const { message = 'The start was cancelled.', hint = null } = outcome.failure ?? {}
      if (outcome.failure) ports.note(job.subject, 'app.start_failed', { error: message })
      return context.apps.transition(job.subject, FAILED_START.get(was ?? '') ?? 'give_up', {
        error: [message, hint].filter(Boolean).join(' '),
      })
    },
  })
}

/** Removes what the deployments of an app have on the disk; others are served after each hundred of them. */
async function removeFiles(context: DeployContext, app_id: string, signal: AbortSignal): Promise<void> {
  for (let at = 0; ; at += LOOKED_AT) {
    signal.throwIfAborted()
    const { rows } = context.deployments.history(app_id, LOOKED_AT, at)
    for (const row of rows) {
      context.logs.remove(row.id)
      await removeTree(join(context.work_directory, row.id))
      const { upload } = requestOf(row)
      if (upload) rmSync(join(context.uploads_directory, upload), { force: true })
    }
    if (rows.length < LOOKED_AT) return
    await setImmediate()
  }
}

/**
 * Removes everything that belongs to an app; the row goes last, so that a crash leaves something to go on
 * with.
 */
function deleteJob(context: DeployContext, ports: LifecyclePorts): JobDefinition<LifecyclePayload, object> {
  return defineJob<LifecyclePayload, object>({
    kind: 'app.delete',
    initial: () => ({}),
    classify,
    redact: redactIn(context),
    steps: [
      {
        name: 'backup',
        timeout_ms: 86_400_000,
        async run({ payload, signal, skip }) {
          if (payload.backup_id) await ports.takeFinalBackup(payload.backup_id, signal)
          else skip()
        },
      },
      {
        name: 'route',
        irrevocable: true,
        run: ({ payload }) => context.routing.remove(payload.app_id),
      },
      {
        name: 'containers',
        irrevocable: true,
        run: ({ payload }) => context.engine.removeLabelled({ app: payload.app_id }),
      },
      {
        name: 'volumes',
        irrevocable: true,
        async run({ payload, skip }) {
          if (payload.volumes) await context.ports.removeVolumes(payload.app_id)
          else skip()
        },
      },
      {
        name: 'images',
        irrevocable: true,
        async run({ payload }) {
          for (const image of await context.engine.listImages({ app: payload.app_id }))
            await context.engine.removeImage(image.id)
        },
      },
      {
        name: 'files',
        irrevocable: true,
        async run({ payload, signal }) {
          await removeFiles(context, payload.app_id, signal)
          await context.git.forget(payload.app_id)
        },
      },
      {
        name: 'history',
        irrevocable: true,
        run: ({ payload, signal }) => ports.forgetHistory(payload.app_id, signal),
      },
    ],
    onEnd(job, outcome) {
      if (outcome.status === 'succeeded') return ports.removeApp(job.subject)
      const { was = 'failed', backup_id } = JSON.parse(job.payload) as LifecyclePayload
      const { message = 'The deletion was cancelled.', hint } = outcome.failure ?? {}
      if (backup_id) ports.dropFinalBackup(backup_id, message)
      ports.keepApp(job.subject, was, [message, hint].filter(Boolean).join(' '))
    },
  })
}

export const lifecycleJobs = (context: DeployContext, ports: LifecyclePorts) => [
  stopJob(context),
  startJob(context, ports),
  deleteJob(context, ports),
]
