import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import { requireSuccess, succeeds } from './commands.ts'
import type { Recover } from './engine.ts'
import type { DatabaseInstance } from './instance.ts'
import { ensureLogin, type Servers } from './servers.ts'
import type { SpareSpec } from './workload.ts'

/** Opens the bytes; called once for each attempt. */
export type DumpSource = () => Readable | Promise<Readable>
/** What a server recovers from. */
export interface RecoverySource {
  /** Copy of the files of a server; called once for each attempt. */
  copy: DumpSource
  /** Tar archive of the pieces of the log since then. */
  pieces: DumpSource
  /** ISO time up to which everything that was committed comes back. */
  at: string
  /** Name of the database inside the server that the copy is of. */
  database: string
}
const PAUSE_MS = 500

/** Fills an empty volume from a copy and the log since then, and answers once its server runs as any other. */
export async function recoverServer(
  servers: Servers,
  spec: SpareSpec,
  source: RecoverySource,
  signal: AbortSignal,
): Promise<DatabaseInstance> {
  const recover = spec.engine.point_in_time?.recover
  if (!recover)
    throw new Fatal(
      'no_log',
      `${spec.engine.label} cannot go back to a moment: it keeps no log of its changes.`,
    )
  await servers.instead(spec, (idle) => fill(idle, recover, source, signal), signal)
  const server = await replay(servers, spec, recover, source.at, signal)
  await requireSuccess(server, recover.adopt(spec.credentials, source.database), signal)
  await ensureLogin(server, signal)
  await requireSuccess(server, recover.clean(), signal)
  await servers.stop(spec.volume_id)
  return servers.ensure(spec, signal)
}

async function fill(
  idle: DatabaseInstance,
  recover: Recover,
  source: RecoverySource,
  signal: AbortSignal,
): Promise<void> {
  for (const command of recover.before()) await requireSuccess(idle, command, signal)
  await requireSuccess(idle, recover.unpack(), signal, { stdin: await source.copy() })
  await requireSuccess(idle, recover.put(), signal, { stdin: await source.pieces() })
  for (const command of recover.after()) await requireSuccess(idle, command, signal)
}

/**
 * A server stops at the first commit after the moment. Where there is none, it says so and ends: then all that
 * there is belongs to the moment, and it reads on to the end.
 */
async function replay(
  servers: Servers,
  spec: SpareSpec,
  recover: Recover,
  at: string,
  signal: AbortSignal,
): Promise<DatabaseInstance> {
  try {
    return await replayed(servers, { ...spec, command: recover.load(at) }, recover, signal)
  } catch (error) {
    if (!(error instanceof Fatal && error.log.some((line) => recover.ended_early.test(line)))) throw error
    await servers.stop(spec.volume_id)
    return replayed(servers, { ...spec, command: recover.load(null) }, recover, signal)
  }
}

async function replayed(
  servers: Servers,
  spec: SpareSpec & { command: readonly string[] },
  recover: Recover,
  signal: AbortSignal,
): Promise<DatabaseInstance> {
  await servers.start(spec, signal)
  for (;;) {
    // A long log is replayed for hours: as long as the server lives, it is waited for.
    const server = await servers.alive(spec)
    if (await succeeds(server, recover.recovered(), signal)) return server
    await wait(PAUSE_MS, undefined, { signal })
  }
}
