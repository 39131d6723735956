/**
 * Checks the compose file of a request. Variables may still be missing: the deployment asks for them. Throws a
 * 422 with every fault, below the field `compose`; answers the names of the services that keep running.
 */
export async function checkCompose(text: string): Promise<string[]> {
  // Loaded when first used: the parser is large.
  const { ComposeError, parseCompose } = await import('#server/compose/parse')
  try {
    return parseCompose(text).services.flatMap(({ name, one_off }) => (one_off ? [] : [name]))
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error
    const { invalidCompose } = await import('#server/compose/refusal')
    throw invalidCompose('compose', error)
  }
}
