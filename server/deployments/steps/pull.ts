import { EngineError, type Image } from '#server/platform/engine/engine'
import { isNamed } from '#server/platform/engine/images'
import type { Workshop } from '../work.ts'

/** Pulls an image, or takes the one of that name on this server where no registry has it. */
export async function pull(
  shop: Workshop,
  reference: string,
  onLog: (line: { stream: 'stdout' | 'stderr' | 'system'; text: string }) => void,
  signal: AbortSignal,
): Promise<Image> {
  await shop.ports.checkImage(reference, signal)
  onLog({ stream: 'system', text: `Pulling ${reference}.` })
  try {
    return await shop.engine.pullImage(reference, { auth: shop.ports.registryAuth(reference), onLog }, signal)
  } catch (error) {
    const here =
      error instanceof EngineError && error.code === 'image_not_found'
        ? await shop.engine.findImage(reference)
        : undefined
    if (!here || !isNamed(here, reference)) throw error
    onLog({
      stream: 'system',
      text: `${(error as Error).message} The image of that name on this server is used.`,
    })
    return here
  }
}
