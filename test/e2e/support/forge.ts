import { afterAll, beforeAll } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { type Portreeve, startPortreeve } from '#test/support/portreeve'

/** A Portreeve and the Git server that it clones from; there from the first hook on. */
export interface Forged {
  portreeve: Portreeve
  forge: GitServer
}

/**
 * Starts a Portreeve with a Git server beside it for the tests of a file, and ends both. Call it before hooks
 * that need them.
 */
export function useForge(): Forged {
  const parts: Partial<Forged> = {}
  beforeAll(async () => {
    parts.forge = await startGitServer()
    parts.portreeve = await startPortreeve({
      env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: parts.forge.host },
    })
  })
  afterAll(async () => {
    await parts.portreeve?.dispose()
    await parts.forge?.close()
  })
  return parts as Forged
}
