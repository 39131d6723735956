import { newId } from '#server/kernel/ids'
import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import { classify } from './classify.ts'
import { requireRoom } from './release-shares.ts'
import { buildStep, detectStep, undoBuild } from './steps/image.ts'
import { releaseStep, soakStep, startStep, verifyStep } from './steps/run.ts'
import { cloneStep, removeWork } from './steps/source.ts'
import { restorePrevious } from './stop-first.ts'
import { retireStep, switchStep, undoSwitch } from './steps/switch.ts'
import type { DeployPayload, DeployState, DeployContext } from './work.ts'

const MINUTE_MS = 60_000
/**
 * A release that had traffic may end its requests when it is taken back; one that had none is ended at once.
 */
const UNDO_GRACE_S = 5

/** How a deployment ends, in the transaction that ends its job. */
export type OnDeployEnd = NonNullable<JobDefinition<DeployPayload, DeployState>['onEnd']>
export type OnDeployStep = NonNullable<JobDefinition<DeployPayload, DeployState>['onStep']>

/**
 * The runbook of a deployment. Up to `soak` everything can be taken back, and the old release serves or is
 * ready to serve again;
 * from `retire` on the new release is final.
 */
export function deployJob(
  context: DeployContext,
  onStep: OnDeployStep,
  onEnd: OnDeployEnd,
): JobDefinition<DeployPayload, DeployState> {
  const runbook = defineJob<DeployPayload, DeployState>({
    kind: 'deploy',
    initial: () => ({ release_id: newId('rel') }),
    classify,
    onStep,
    onEnd,
    // Without it the log tells what the step did before and what it does now as one.
    onResume: (job, step) =>
      context.logs.append(job.subject, step, 'system', 'Portreeve was restarted; this step begins anew.'),
    redact: (job, text) => context.logs.redact(job.subject, text),
    steps: [
      {
        name: 'clone',
        timeout_ms: 15 * MINUTE_MS,
        run: (step) => cloneStep(context, step),
        undo: (step) => removeWork(context, step.payload.deployment_id),
      },
      { name: 'detect', run: async (step) => detectStep(context, step) },
      {
        name: 'build',
        pool: 'build',
        attempts: 2,
        timeout_ms: context.defaults.build.timeout_ms + 5 * MINUTE_MS,
        run: (step) => buildStep(context, step),
        undo: (step) => undoBuild(context, step),
      },
      {
        name: 'release',
        timeout_ms: 20 * MINUTE_MS,
        run(step) {
          // Before the first wait, so that of two deployments each counts with the other.
          requireRoom(context, step)
          return releaseStep(context, step)
        },
        undo: (step) => restorePrevious(context, step),
      },
      {
        name: 'start',
        run: (step) => startStep(context, step),
        undo: (step) =>
          context.engine.removeRelease(step.state.release_id, step.state.live_at ? UNDO_GRACE_S : 0),
      },
      { name: 'verify', timeout_ms: 40 * MINUTE_MS, run: (step) => verifyStep(context, step) },
      {
        name: 'switch',
        run: (step) => switchStep(context, step),
        undo: (step) => undoSwitch(context, step),
      },
      { name: 'soak', timeout_ms: 15 * MINUTE_MS, run: (step) => soakStep(context, step) },
      { name: 'retire', irrevocable: true, run: (step) => retireStep(context, step) },
    ],
  })
  return {
    ...runbook,
    // A password that was changed while an earlier step ran is known to the log before the next step can
    // print it.
    steps: runbook.steps.map((defined) => ({
      ...defined,
      async run(step) {
        await context.logs.protect(step.payload.deployment_id)
        return defined.run(step)
      },
    })),
  }
}
