import { createConnection } from '#server/platform/engine/connection'
import { EngineError } from '#server/platform/engine/engine'
import { ClusterError, type NodeFacts } from './cluster.ts'
import { FACTS_SCRIPT, type FactsAnswer, parseFacts } from './facts.ts'
import { output } from './remote-run.ts'
import type { Session } from './session.ts'
import { swarmState } from './swarm.ts'

/** Asks a server what it is; reads only. */
export async function askFacts({ run }: Pick<Session, 'run'>): Promise<FactsAnswer> {
  const asked_at_ms = Date.now()
  const text = await output(run, ['sh', '-s'], { stdin: FACTS_SCRIPT, timeout_ms: 15_000 })
  return { text, asked_at_ms, answered_at_ms: Date.now() }
}

/** The version of a server's engine and whether it is in a cluster; undefined where none answers. */
export async function askEngine(
  session: Pick<Session, 'openEngine'>,
): Promise<{ version: string; in_cluster: boolean } | undefined> {
  const connection = createConnection({ open: () => session.openEngine() })
  try {
    const { Version } = await connection.call<{ Version: string }>({ path: '/version' })
    return { version: Version, in_cluster: (await swarmState(connection)).is_member }
  } catch (error) {
    if (error instanceof EngineError) return undefined
    throw error
  } finally {
    connection.close()
  }
}

export async function inspectServer(session: Session): Promise<NodeFacts> {
  const facts = parseFacts(
    await askFacts(session).catch((cause: unknown) => {
      if (cause instanceof ClusterError) throw cause
      throw new ClusterError('failed', 'The server does not say what it is.', {
        cause,
        hint: 'It must be a Linux with a POSIX shell for the user of the login.',
      })
    }),
  )
  const engine = await askEngine(session)
  return {
    ...facts,
    host_key: session.host_key,
    is_root: session.is_root,
    in_cluster: engine?.in_cluster === true,
    ...(engine ? { engine_version: engine.version } : {}),
    // They are its engine's own then.
    ...(engine?.in_cluster ? { taken_ports: [] } : {}),
  }
}
