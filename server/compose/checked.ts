import type { ComposePlan } from './model.ts'

/**
 * Reads the compose file of a request. Variables may still be missing: the deployment asks for them. Throws a 422
 * with every fault, below the field `compose`.
 */
export async function checkedCompose(text: string): Promise<ComposePlan> {
  // Loaded when first used: the parser is large.
  const { ComposeError, parseCompose } = await import('./parse.ts')
  try {
    return parseCompose(text)
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error
    const { invalidCompose } = await import('./refusal.ts')
    throw invalidCompose('compose', error)
  }
}

/** Names of the services that keep running; the others run to their end. */
export const keptServices = ({ services }: ComposePlan): string[] =>
  services.flatMap(({ name, one_off }) => (one_off ? [] : [name]))
