import { newId } from '#server/kernel/ids'
import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import { classify } from './classify.ts'
import { buildStep, detectStep, undoBuild } from './steps/image.ts'
import { releaseStep, soakStep, startStep, verifyStep } from './steps/run.ts'
import { cloneStep, removeWork } from './steps/source.ts'
import { restorePrevious } from './stop-first.ts'
import { retireStep, switchStep, undoSwitch } from './steps/switch.ts'
import type { DeployPayload, DeployState, Workshop } from './work.ts'

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
  shop: Workshop,
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
      shop.logs.append(job.subject, step, 'system', 'Portreeve was restarted; this step begins anew.'),
    redact: (job, text) => shop.logs.redact(job.subject, text),
    steps: [
      {
        name: 'clone',
        timeout_ms: 15 * MINUTE_MS,
        run: (context) => cloneStep(shop, context),
        undo: (context) => removeWork(shop, context.payload.deployment_id),
      },
      { name: 'detect', run: async (context) => detectStep(shop, context) },
      {
        name: 'build',
        pool: 'build',
        attempts: 2,
        timeout_ms: shop.defaults.build.timeout_ms + 5 * MINUTE_MS,
        run: (context) => buildStep(shop, context),
        undo: (context) => undoBuild(shop, context),
      },
      {
        name: 'release',
        attempts: 1,
        timeout_ms: 20 * MINUTE_MS,
        run: (context) => releaseStep(shop, context),
        undo: (context) => restorePrevious(shop, context),
      },
      {
        name: 'start',
        run: (context) => startStep(shop, context),
        undo: (context) =>
          shop.engine.removeRelease(context.state.release_id, context.state.live_at ? UNDO_GRACE_S : 0),
      },
      { name: 'verify', timeout_ms: 40 * MINUTE_MS, run: (context) => verifyStep(shop, context) },
      {
        name: 'switch',
        run: (context) => switchStep(shop, context),
        undo: (context) => undoSwitch(shop, context),
      },
      { name: 'soak', timeout_ms: 15 * MINUTE_MS, run: (context) => soakStep(shop, context) },
      { name: 'retire', irrevocable: true, run: (context) => retireStep(shop, context) },
    ],
  })
  return {
    ...runbook,
    // A password that was changed while an earlier step ran is known to the log before the next step can
    // print it.
    steps: runbook.steps.map((step) => ({
      ...step,
      run(context) {
        shop.logs.protect(context.payload.deployment_id)
        return step.run(context)
      },
    })),
  }
}
