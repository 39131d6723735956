import { WAIT_LIMIT_MS } from '#server/kernel/jobs/outages'
import type { RunOnceSpec, RunResult } from '#server/platform/engine/engine'
import type { DeployContext, DeployStep } from './work.ts'

/**
 * Runs a container of a deployment to its end and tells its lines in the deployment's log.
 * @param told the step that its lines are put under, and how many of the last ones are answered.
 */
export async function runToEnd(
  context: DeployContext,
  step: DeployStep,
  spec: Omit<RunOnceSpec, 'onLog'>,
  told: { step: string; last: number },
): Promise<RunResult & { tail: string[] }> {
  const tail: string[] = []
  const result = await context.engine.runOnce(
    {
      ...spec,
      // It may have changed data, and is not begun again: how it ended is worth as much waiting as
      // any other step.
      patience_ms: WAIT_LIMIT_MS,
      onLog(line) {
        context.logs.append(step.payload.deployment_id, told.step, line.stream, line.text)
        tail.push(line.text)
        if (tail.length > told.last) tail.shift()
      },
    },
    step.signal,
  )
  return { ...result, tail }
}
