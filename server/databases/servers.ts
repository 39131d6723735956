import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '#server/kernel/clock'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Engine, Instance } from '#server/platform/engine/engine'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { refusesTcp } from '#server/platform/tcp'
import { networkOf } from '#server/platform/engine/network-name'
import { heldBack, lastWords, requireSuccess, runInside, succeeds } from './commands.ts'
import type { DatabaseInstance } from './instance.ts'
import { READY_LIMIT_MS, type ServerSpec, STOP_GRACE_S, tlsFilesOf, workloadOf } from './workload.ts'

const PAUSE_MS = 50
/** A port costs next to nothing to ask; whether its server still lives is asked once in so many times. */
const GLANCE_MS = 10
const GLANCES = 10
/**
 * A command inside the container takes processor time from a server that starts, and its port costs nothing to
 * ask: while that refuses, only one look of so many runs the command. Where it cannot be reached, each does.
 */
const LOOKS = 20
const REFUSAL_LIMIT_MS = 200
const LAST_LINES = 20
const CERTIFICATE_DAYS = 3650
/** In place of a server while files are put beside its data; ends by itself when nobody comes back for it. */
const IDLE = ['sleep', '86400']

/** Servers of databases as containers: made, asked, told to end. Knows no rows. */
export function createServers({ engine, clock }: { engine: Engine; clock: Clock }) {
  const find = async (volume_id: string): Promise<Instance | undefined> =>
    (await engine.instances({ release_id: volume_id }))[0]
  const stop = (volume_id: string, grace_s = STOP_GRACE_S) => engine.removeRelease(volume_id, grace_s)

  const instanceOf = (
    instance_id: string,
    spec: Pick<ServerSpec, 'engine' | 'version' | 'credentials'>,
  ): DatabaseInstance => ({
    engine: spec.engine,
    version: spec.version,
    credentials: spec.credentials,
    run: (command, streams, signal) => runInside(engine, instance_id, command, streams, signal),
  })

  /** Throws what the server said last when it has ended instead of answering. */
  async function requireAlive(spec: ServerSpec): Promise<Instance> {
    const instance = await find(spec.volume_id)
    if (instance?.state === 'running') return instance
    const lines: string[] = []
    if (instance)
      for await (const line of engine.logs(instance.id, { tail: LAST_LINES })) lines.push(line.text)
    const killed = instance?.oom_killed
    throw new Fatal(
      killed ? 'out_of_memory' : 'database_ended',
      killed
        ? `${spec.engine.label} was killed for using more memory than its limit.`
        : `${spec.engine.label} ended instead of starting${instance?.exit_code === undefined ? '' : `, with exit code ${instance.exit_code}`}.`,
      killed ? 'Raise its memory limit, then start it.' : 'Look at its log, then start it again.',
      lastWords(lines.join('\n'), spec),
    )
  }

  async function untilReady(spec: ServerSpec, signal: AbortSignal): Promise<DatabaseInstance> {
    const end = clock.monotonic_ms() + READY_LIMIT_MS
    for (let look = 0; ; look += 1) {
      const { id, address } = await requireAlive(spec)
      const instance = instanceOf(id, spec)
      const is_due = look % LOOKS === LOOKS - 1
      if (!is_due && (await refuses(spec, address, signal))) {
        await wait(PAUSE_MS, undefined, { signal })
        continue
      }
      // One that has ended is told better by the next look.
      if (await succeeds(instance, spec.engine.probe(spec.credentials), signal)) return instance
      if (clock.monotonic_ms() > end)
        throw new Fatal(
          'not_ready',
          `${spec.engine.label} did not answer within ${READY_LIMIT_MS / 1000} seconds.`,
          'Look at its log, then start it again.',
        )
      await wait(PAUSE_MS, undefined, { signal })
    }
  }

  /** A server on a new volume once its port does not refuse any more. */
  async function untilOpen(spec: ServerSpec, signal: AbortSignal): Promise<DatabaseInstance> {
    const end = clock.monotonic_ms() + READY_LIMIT_MS
    for (;;) {
      const { id, address } = await requireAlive(spec)
      for (let glance = 0; glance < GLANCES; glance += 1) {
        if (clock.monotonic_ms() > end || !(await refuses(spec, address, signal))) return instanceOf(id, spec)
        await wait(GLANCE_MS, undefined, { signal })
      }
    }
  }

  async function start(spec: ServerSpec, signal: AbortSignal): Promise<Instance> {
    await engine.ensureNetwork(networkOf(spec), { project: spec.project_id })
    const [instance] = await engine.ensureRelease(workloadOf(spec), signal)
    return instance!
  }

  /** From now on the engine starts the server again where it ends. */
  const supervise = (spec: ServerSpec) => engine.superviseRelease(spec.volume_id, true)

  /** Something that is not the server runs on its volume while `work` goes on. */
  async function instead(
    spec: ServerSpec,
    work: (idle: DatabaseInstance) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { public_port: _closed, alias: _unnamed, ...rest } = spec
    await stop(spec.volume_id)
    const { id } = await start({ ...rest, command: IDLE }, signal)
    await work(instanceOf(id, spec))
    await stop(spec.volume_id, 0)
  }

  /** Puts a certificate that vouches for itself beside the data, unless there is one. */
  async function ensureCertificate(spec: ServerSpec, signal: AbortSignal): Promise<void> {
    const files = tlsFilesOf(spec)
    if (!files) return
    const path = (name: string) => `${files.directory}/server.${name}`
    const isThere = async (in_container: DatabaseInstance) =>
      (await in_container.run({ argv: ['test', '-s', path('pem')], env: {} }, {}, signal)).exit_code === 0
    const server = await find(spec.volume_id)
    if (server?.state === 'running' && (await isThere(instanceOf(server.id, spec)))) return
    const put = async (idle: DatabaseInstance) => {
      if (await isThere(idle)) return
      for (const [name, stdin] of Object.entries(certificateFiles(spec, clock.now()))) {
        const argv = ['install', '-D', '-o', files.owner, '-m', '600', '/dev/stdin', path(name)]
        await requireSuccess(idle, { argv, env: {}, stdin }, signal)
      }
    }
    await instead(spec, put, signal)
  }

  return {
    find,
    start,
    stop,
    untilReady,
    supervise,
    instead,
    /** The server whether it answers or not; throws what it said last when it has ended. */
    alive: async (spec: ServerSpec): Promise<DatabaseInstance> =>
      instanceOf((await requireAlive(spec)).id, spec),
    /** Makes sure that the server runs as it is described, and answers. */
    async ensure(spec: ServerSpec, signal: AbortSignal): Promise<DatabaseInstance> {
      await ensureCertificate(spec, signal)
      await start(spec, signal)
      return untilReady(spec, signal)
    },
    /**
     * A server on a new volume, with the login of its row. The command that makes it is begun beside the server
     * and held until that opens its port: most take their login then, and to begin one takes as long as to run it.
     * Beside it the engine is told to start the server again where it ends, as one that got so far does.
     */
    async make(spec: ServerSpec, signal: AbortSignal): Promise<DatabaseInstance> {
      await ensureCertificate(spec, signal)
      const { id } = await start(spec, signal)
      const opened = untilOpen(spec, signal)
      const { command, input } = heldBack(
        spec.engine.set_password(spec.credentials),
        spec.engine.probe(spec.credentials),
        opened,
      )
      const [open, is_made] = await Promise.all([
        opened,
        succeeds(instanceOf(id, spec), command, signal, { stdin: input }),
        opened.then(() => supervise(spec)),
      ])
      if (is_made) return open
      const ready = await untilReady(spec, signal)
      await makeLogin(ready, signal)
      return ready
    },
    /** The server that runs now, without waiting for anything. */
    async running(
      spec: Pick<ServerSpec, 'engine' | 'version' | 'credentials' | 'volume_id'>,
    ): Promise<DatabaseInstance | undefined> {
      const instance = await find(spec.volume_id)
      return instance?.state === 'running' ? instanceOf(instance.id, spec) : undefined
    },
  }
}
export type Servers = ReturnType<typeof createServers>

const refuses = async (spec: ServerSpec, address: string | undefined, signal: AbortSignal) =>
  address !== undefined && (await refusesTcp(address, spec.engine.port, REFUSAL_LIMIT_MS, signal))

/** `pem` comes last: while it is there, the others are. */
function certificateFiles(spec: ServerSpec, now: number): Record<'crt' | 'key' | 'pem', string> {
  const pem = createSelfSigned([spec.alias ?? spec.database_id], new Date(now), CERTIFICATE_DAYS)
  const part = (kind: RegExp) => `${(pem.match(kind) ?? []).join('\n')}\n`
  return {
    crt: part(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g),
    key: part(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?-----END [A-Z ]*PRIVATE KEY-----/g),
    pem,
  }
}

/** Makes the login of a server on a new volume, where there is none to try first. */
export const makeLogin = (instance: DatabaseInstance, signal: AbortSignal): Promise<unknown> =>
  requireSuccess(instance, instance.engine.set_password(instance.credentials), signal)

/** Makes the login valid where it is not: on a copy of another database. */
export async function ensureLogin(instance: DatabaseInstance, signal: AbortSignal): Promise<void> {
  const { engine, credentials } = instance
  const login = await instance.run(engine.login(credentials), {}, signal)
  if (login.exit_code !== 0) await makeLogin(instance, signal)
}
