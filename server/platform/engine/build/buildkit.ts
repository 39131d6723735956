import { createHash, randomUUID } from 'node:crypto'
import type { BuildCap } from './cap.ts'
import { buildError } from './failure.ts'
import { openBuildSession, DOCKERFILE_NAME } from './session.ts'
import { createTraceReader } from './trace.ts'
import type { Connection } from '../connection.ts'
import { EngineError, type BuildSpec } from '../engine.ts'
import { madeHoles, type WatchHoles } from '../holes.ts'
import { readJsonLines } from '../json-lines.ts'
import type { LabelScope } from '../labels.ts'

/** The engine runs the steps of this build where they cannot be capped; the classic builder must do it. */
export class UncappedBuild extends Error {
  /** Whether a step was seen to run without limits, and not only that limits could not be set. */
  readonly ran_outside: boolean
  constructor(reason: string, options: ErrorOptions & { ran_outside?: boolean } = {}) {
    super(reason, options)
    this.name = 'UncappedBuild'
    this.ran_outside = options.ran_outside ?? false
  }
}

/**
 * A step that runs for this long without being seen in the capped group runs outside of it. On a
 * loaded machine some seconds pass between what the builder tells and the step's first process.
 */
const UNSEEN_STEP_MS = 10_000
const CHECK_MS = 250

/** Images of apps; none may be built on another, whoever they belong to. */
const OWN_IMAGE = /^(?:docker\.io\/)?portreeve\//

/** Why the builder may not use an image that it names. */
function refusalOf(name: string, spec: BuildSpec): EngineError | undefined {
  if (OWN_IMAGE.test(name))
    return new EngineError(
      'build_failed',
      'The Dockerfile uses an image of an app of this installation.',
      'Use a base image of a registry.',
    )
  const answer = spec.mayUse?.(name) ?? true
  if (answer === true) return undefined
  if (answer !== false) return answer
  return new EngineError(
    'build_failed',
    `The build uses ${name.slice(0, 200)}, which the Dockerfile does not name, from a registry whose login this commit may not use.`,
    'Use a base image without ONBUILD instructions, or approve the commit with secrets.',
  )
}

/** Where a build runs and how it is capped. */
export interface BuildKitHost {
  connection: Connection
  scope: LabelScope
  cap: BuildCap
  watchHoles: WatchHoles
}

interface BuildEvent {
  id?: string
  aux?: unknown
  error?: string
  errorDetail?: { message?: string }
}

/** Parameters that both builders share. */
export const buildQuery = (spec: BuildSpec, scope: LabelScope) => ({
  t: spec.tag,
  target: spec.target,
  nocache: spec.no_cache,
  rm: true,
  forcerm: true,
  pull: false,
  labels: JSON.stringify(scope.stored(spec.labels)),
  buildargs: JSON.stringify(
    Object.fromEntries(Object.entries(spec.build_args).filter(([name]) => !BUILDER_ARGUMENT.test(name))),
  ),
})

/** Arguments of these names steer the builder; nobody but this file may set one. */
const BUILDER_ARGUMENT = /^BUILDKIT_/i

/**
 * What keeps the caches of scopes apart. Cache mounts have a name space of their own. The result of
 * a step is found by its text and its inputs, without its mounts, so that another scope with the
 * same text would get what was made with this one's secrets and cache mounts: a host name that only
 * the steps of this scope know is one of their inputs.
 */
function cacheQuery(spec: BuildSpec, query: ReturnType<typeof buildQuery>) {
  const named = (scope: string) => createHash('sha256').update(scope).digest('hex').slice(0, 32)
  const args = JSON.parse(query.buildargs) as Record<string, string>
  return {
    buildargs: JSON.stringify({
      ...args,
      BUILDKIT_CACHE_MOUNT_NS: named(spec.mount_scope ?? spec.cache_scope),
    }),
    extrahosts: `${named(spec.cache_scope)}.cache.invalid:127.0.0.1`,
  }
}

function beginCapped(cap: BuildCap, spec: BuildSpec) {
  try {
    return cap.begin(spec.limits)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UncappedBuild(`the limits of build steps cannot be set (${code ?? message})`, { cause: error })
  }
}

/**
 * Builds with BuildKit through the engine's API and answers the image's id. The answer counts as a
 * success only with an id in it: errors come as events of a successful response, and an answer that
 * was cut off looks like one that ended.
 */
export async function buildWithBuildKit(
  { connection, scope, cap, watchHoles }: BuildKitHost,
  spec: BuildSpec,
  signal: AbortSignal,
): Promise<string> {
  const slot = beginCapped(cap, spec)
  const stop = new AbortController()
  let uncapped = false
  let refusal: EngineError | undefined
  const trace = createTraceReader(
    spec.cache_scope,
    (line) => refusal === undefined && spec.onLog(line),
    (name) => {
      refusal ??= refusalOf(name, spec)
      if (refusal) stop.abort()
    },
  )
  const holes = watchHoles(signal, trace)
  const abort = () => stop.abort()
  if (signal.aborted) stop.abort()
  else holes.signal.addEventListener('abort', abort, { once: true })
  const watch = setInterval(() => {
    if (trace.runningFor(performance.now()) < UNSEEN_STEP_MS || slot.seen()) return
    uncapped = true
    stop.abort()
  }, CHECK_MS)
  const build_id = randomUUID()
  const query = buildQuery(spec, scope)
  const end = () => {
    clearInterval(watch)
    holes.signal.removeEventListener('abort', abort)
    holes.stop()
    slot.end()
  }
  const session = await openBuildSession(connection, spec, stop.signal).catch((error: unknown) => {
    end()
    throw error
  })
  try {
    const answer = await connection.stream({
      method: 'POST',
      path: '/build',
      signal: stop.signal,
      deadline_ms: 0,
      query: {
        ...query,
        ...cacheQuery(spec, query),
        version: '2',
        remote: 'client-session',
        session: session.id,
        buildid: build_id,
        dockerfile: DOCKERFILE_NAME,
      },
    })
    let image_id: string | undefined
    let failure: string | undefined
    for await (const event of readJsonLines<BuildEvent>(answer)) {
      if (event.id === 'moby.buildkit.trace' && typeof event.aux === 'string') await trace.read(event.aux)
      if (event.id === 'moby.image.id') image_id = (event.aux as { ID?: string }).ID
      failure ??= event.errorDetail?.message ?? event.error
    }
    trace.end()
    if (refusal) throw refusal
    if (failure !== undefined || !image_id) {
      throw buildError({
        message: failure ?? 'the builder ended without an image',
        step: trace.failed?.name,
        lines: trace.failed?.lines,
        dockerfile: spec.dockerfile,
        memory_bytes: spec.limits.memory_bytes,
        memory: slot.memory(),
      })
    }
    return image_id
  } catch (error) {
    trace.end()
    if (refusal) throw refusal
    if (uncapped)
      throw new UncappedBuild('the steps of a build ran outside of the group that is limited', {
        ran_outside: true,
      })
    if (stop.signal.aborted) void cancel(connection, build_id)
    if (!holes.filled()) throw error
    await holes.settled()
    throw madeHoles(error)
  } finally {
    session.close()
    end()
  }
}

/**
 * The engine ends a build whose client is gone; saying so as well ends it at once on engines that
 * notice late.
 */
async function cancel(connection: Connection, build_id: string): Promise<void> {
  await connection
    .call({ method: 'POST', path: '/build/cancel', query: { id: build_id } })
    .catch((error: unknown) => {
      if (!(error instanceof EngineError)) throw error
    })
}
