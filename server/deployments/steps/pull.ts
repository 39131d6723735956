import { EngineError, type Image } from '#server/platform/engine/engine'
import { isNamed } from '#server/platform/engine/images'
import type { DeployedApp, DeployContext } from '../work.ts'

/**
 * Pulls an image, or takes the one of that name on this server where no registry has it. Where a login is withheld,
 * an image counts only when the registry shows it to everybody: the one that is here may have come by the login.
 */
export async function pull(
  context: DeployContext,
  app: DeployedApp,
  reference: string,
  onLog: (line: { stream: 'stdout' | 'stderr' | 'system'; text: string }) => void,
  signal: AbortSignal,
): Promise<Image> {
  await context.ports.checkImage(reference, signal)
  onLog({ stream: 'system', text: `Pulling ${reference}.` })
  const auth = context.ports.registryAuth(app, reference)
  if (auth === 'withheld') return context.engine.pullImage(reference, { anonymously: true, onLog }, signal)
  try {
    return await context.engine.pullImage(reference, { auth, onLog }, signal)
  } catch (error) {
    const here =
      error instanceof EngineError && error.code === 'image_not_found'
        ? await context.engine.findImage(reference)
        : undefined
    // What an app was built from is nobody else's, whatever it is called by.
    if (!here || here.owner !== undefined || !isNamed(here, reference)) throw error
    onLog({
      stream: 'system',
      text: `${(error as Error).message} The image of that name on this server is used.`,
    })
    return here
  }
}
