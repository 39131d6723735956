import { EngineError, type Image } from '#server/platform/engine/engine'
import { isNamed } from '#server/platform/engine/images'
import type { DeployContext } from '../work.ts'

/** Pulls an image, or takes the one of that name on this server where no registry has it. */
export async function pull(
  context: DeployContext,
  reference: string,
  onLog: (line: { stream: 'stdout' | 'stderr' | 'system'; text: string }) => void,
  signal: AbortSignal,
): Promise<Image> {
  await context.ports.checkImage(reference, signal)
  onLog({ stream: 'system', text: `Pulling ${reference}.` })
  try {
    return await context.engine.pullImage(
      reference,
      { auth: context.ports.registryAuth(reference), onLog },
      signal,
    )
  } catch (error) {
    const here =
      error instanceof EngineError && error.code === 'image_not_found'
        ? await context.engine.findImage(reference)
        : undefined
    if (!here || !isNamed(here, reference)) throw error
    onLog({
      stream: 'system',
      text: `${(error as Error).message} The image of that name on this server is used.`,
    })
    return here
  }
}
