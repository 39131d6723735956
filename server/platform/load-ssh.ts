import { inTurns } from '#server/kernel/in-turns'

/** The SSH library, loaded by the first connection or key that needs it. */
export async function loadSsh() {
  await inTurns(
    () => import('node:https'),
    () => import('ssh2/lib/protocol/keyParser.js' as string),
    () => import('ssh2/lib/protocol/Protocol.js' as string),
  )
  return (await import('ssh2')).default
}
