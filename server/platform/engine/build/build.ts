import { hostname, release } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { inTurns } from '#server/kernel/in-turns'
import { type BuildCap, createBuildCap } from './cap.ts'
import { isFolder, readRules } from './context.ts'
import type { Connection } from '../connection.ts'
import { type DiskRoom, filledTheDisk } from '../disk-room.ts'
import type { CacheLimit } from '../disk-usage.ts'
import { EngineError, type BuildLogLine, type BuildSpec, type EngineVersion, type Image } from '../engine.ts'
import { buildError } from './failure.ts'
import { aborted, EngineAnswer, toEngineError } from '../failures.ts'
import { heartbeat } from '../heartbeat.ts'
import type { WatchHoles } from '../holes.ts'
import type { Images } from '../images.ts'
import type { LabelScope } from '../labels.ts'
import { tookTheMemory, type WatchMemory } from '../memory.ts'
import { rootUser } from '../users.ts'
import { withOwnDev } from './own-dev.ts'
import { REMEMBERED, tellingLines } from './telling-lines.ts'

export interface BuildOptions {
  /** `classic` never uses BuildKit; `auto` does where builds can be capped. */
  builder: 'auto' | 'classic'
  log(message: string): void
  version(): Promise<EngineVersion>
  room: DiskRoom
  watchMemory: WatchMemory
  watchHoles: WatchHoles
  pruneCache(limit: CacheLimit): Promise<number>
}
interface EngineInfo {
  Name?: string
  KernelVersion?: string
  CgroupDriver?: string
  CgroupVersion?: string
}

/**
 * The builders are loaded at the first build: what they speak and pack with would otherwise be half of the
 * memory of an idle server.
 */
const classic = () => import('./classic.ts')
/** So long a builder whose steps ran outside of the limited group is not tried again. */
const OUTSIDE_MS = 600_000

/** The engine gives up within seconds what it writes for a build that was ended; until then, that is in use. */
const PRUNE_TRIES = 10
const PRUNE_MS = 1_000

const buildKit = async () => {
  await inTurns(
    () => import('node:tls'),
    () => import('node:http2'),
    () => import('@grpc/grpc-js'),
    () => import('protobufjs/light.js'),
  )
  return import('./buildkit.ts')
}

/**
 * Builds images, with BuildKit where its steps can be held to limits, else with the classic builder (decision
 * 0003).
 */
export function createBuilds(
  connection: Connection,
  scope: LabelScope,
  images: Images,
  options: BuildOptions,
) {
  /** Kept once it is known: what an engine cannot do now it may be able to after a restart. */
  let cap: BuildCap | undefined
  let reason: string | undefined
  let outside: { until_ms: number; why: string } | undefined

  /** Groups can be set only on the machine of the engine itself. */
  async function findCap(): Promise<BuildCap | string> {
    if (options.builder === 'classic') return 'the classic builder was asked for'
    if (!connection.local) return 'the engine is not on this machine'
    if (process.getuid?.() !== 0) return 'Portreeve does not run as root'
    if (!(await options.version()).buildkit) return 'this engine has no BuildKit'
    const info = await connection.call<EngineInfo>({ path: '/info' })
    if (info.Name !== hostname() || info.KernelVersion !== release())
      return 'the engine is not on this machine, or Portreeve runs in a container'
    const driver = info.CgroupDriver === 'systemd' ? 'systemd' : 'cgroupfs'
    return createBuildCap({ driver, version: info.CgroupVersion === '2' ? 2 : 1 })
  }

  async function withoutBuildKit(spec: BuildSpec, why: string, signal: AbortSignal): Promise<string> {
    reason = why
    const { buildClassic } = await classic()
    const text = `BuildKit is not used for this build, since ${why}: the classic builder makes it, without caches.`
    if (options.builder !== 'classic') spec.onLog({ stream: 'system', text })
    options.log(text)
    return buildClassic(connection, scope, spec, signal)
  }

  /**
   * Which builder makes an image is decided for each build anew. A step that ran outside of the limited group
   * had no limits until that was seen, so the builds of the next minutes are not put at the same risk.
   */
  async function build(spec: BuildSpec, signal: AbortSignal): Promise<string> {
    const found = cap ?? (await findCap())
    if (typeof found === 'string') return withoutBuildKit(spec, found, signal)
    if (outside && performance.now() < outside.until_ms) return withoutBuildKit(spec, outside.why, signal)
    if (mayUnpack(spec.dockerfile) && (await rootUser(connection, signal)) !== 0)
      return withoutBuildKit(
        spec,
        'with users of their own its steps could not change what ADD unpacks',
        signal,
      )
    cap = found
    const is_held = (await options.version()).takes_links_for_devices ?? false
    const held = is_held ? { ...spec, dockerfile: withOwnDev(spec.dockerfile) } : spec
    const { buildWithBuildKit, UncappedBuild } = await buildKit()
    const host = { connection, scope, watchHoles: options.watchHoles }
    try {
      const id = await buildWithBuildKit({ ...host, cap: found }, held, signal)
      reason = undefined
      return id
    } catch (error) {
      if (!(error instanceof UncappedBuild)) throw error
      if (error.ran_outside) outside = { until_ms: performance.now() + OUTSIDE_MS, why: error.message }
      return withoutBuildKit(spec, error.message, signal)
    }
  }

  async function buildImage(spec: BuildSpec, signal: AbortSignal): Promise<Image> {
    if (signal.aborted) throw aborted('The build')
    if (!(await isFolder(spec.context)))
      throw new EngineError(
        'build_failed',
        'The folder to build from does not exist.',
        'Check the root directory of the app.',
      )
    // Said as it is: what the builder hears of it comes back in other words.
    await readRules(spec.context)
    const lines: string[] = []
    const onLog = (line: BuildLogLine) => {
      if (line.stream !== 'system' && lines.push(line.text) > REMEMBERED) lines.shift()
      spec.onLog(line)
    }
    const beat = heartbeat({ silence_ms: 0, limit_ms: spec.limits.timeout_ms }, signal)
    const room = options.room.watch(beat.signal)
    const memory = options.watchMemory(room.signal)
    try {
      const id = await build({ ...spec, onLog }, memory.signal)
      const image = await images.admit(id)
      if (!image)
        throw new EngineError(
          'build_failed',
          'The built image was removed before it could be used.',
          'Deploy again.',
        )
      return image
    } catch (error) {
      if (signal.aborted) throw aborted('The build')
      if (room.filled()) throw await filled(lines, error)
      if (memory.filled()) throw tookTheMemory('The build')
      if (beat.ended()) {
        throw new EngineError(
          'timeout',
          `The build took longer than its time limit of ${duration(spec.limits.timeout_ms)}.`,
          'Raise the time limit for builds, or make the build faster.',
          { cause: error, log: tellingLines(lines) },
        )
      }
      throw refusal(error, spec) ?? toEngineError(error)
    } finally {
      memory.stop()
      room.stop()
      beat.stop()
    }
  }

  /** What a build wrote into caches stays on the disk: without it, databases of everybody would have no room. */
  async function filled(lines: readonly string[], cause: unknown): Promise<EngineError> {
    for (let tries = 0; tries < PRUNE_TRIES && (await options.room.isFull().catch(() => false)); tries += 1) {
      if (tries > 0) await wait(PRUNE_MS)
      await options.pruneCache({}).catch(() => 0)
    }
    const { code, message, hint } = filledTheDisk('The build')
    return new EngineError(code, message, hint, { cause, log: tellingLines(lines) })
  }
  return {
    buildImage,
    /** Why the last build did not use BuildKit; undefined when it did. */
    classicBecause: () => reason,
  }
}

/**
 * Whether ADD may unpack an archive, in a file that the classic builder can read. BuildKit leaves what it unpacks to the root
 * of the machine, so that no step of a container with users of its own may write to it or change its owner.
 */
const mayUnpack = (dockerfile: string): boolean =>
  /^\s*ADD\s/im.test(dockerfile) && !/--mount=\S*type=(?:secret|ssh|bind|tmpfs)\b/i.test(dockerfile)

/** A Dockerfile that cannot be read is refused before the build begins, by an answer with an error status. */
function refusal(error: unknown, spec: BuildSpec): EngineError | undefined {
  const answer = error instanceof EngineError ? error.cause : undefined
  if (!(answer instanceof EngineAnswer) || !/dockerfile|instruction|build stage/i.test(answer.message))
    return undefined
  return buildError({
    message: answer.message,
    dockerfile: spec.dockerfile,
    memory_bytes: spec.limits.memory_bytes,
    memory: 'fine',
  })
}

const duration = (ms: number): string =>
  ms < 120_000 ? `${Math.round(ms / 1000)} seconds` : `${Math.round(ms / 60_000)} minutes`
