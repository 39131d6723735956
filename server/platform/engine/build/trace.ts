import { createPace } from '#server/kernel/pace'
import type { BuildLogLine } from '../engine.ts'
import type { LayerMaker } from '../holes.ts'
import { createLineSplitter, type LineSplitter } from '../containers/log-lines.ts'
import { clampMessage } from '../messages.ts'
import { REMEMBERED } from './telling-lines.ts'
import { type Moment, type Trace, traceCodec, type Vertex } from './wire.ts'

/** A step that failed, in the builder's words. */
export interface FailedStep {
  name: string
  error: string
  /** What it printed last, both streams in the order in which they came. */
  lines: readonly string[]
}

/** Reads BuildKit's trace: log lines out, and what is needed to explain a failure. */
export interface TraceReader extends LayerMaker {
  /** Takes the `aux` text of one `moby.buildkit.trace` event; resolves once all of it was read. */
  read(aux: string): Promise<void>
  /** Hands on lines that had no newline at the end. */
  end(): void
  readonly failed: FailedStep | undefined
  /**
   * Milliseconds for which nothing but RUN steps has been going on; 0 when none is. A step counts
   * as begun once its base image is fetched for it, which may take minutes: the builder says so of
   * that image meanwhile.
   */
  runningFor(now_ms: number): number
}

interface Step {
  announced: boolean
  stdout: LineSplitter
  stderr: LineSplitter
  lines: string[]
}

/** What is split into lines at once: one message may hold a megabyte of line breaks. */
const PART_BYTES = 4096

/** Steps of the builder itself and of the export say nothing that a user can act on. */
const isUserStep = (name: string): boolean => /^\[(?!internal\])/.test(name)
/** What the builder says of each image that it is about to use, however the Dockerfile named it. */
const IMAGE =
  /(?:^\[internal\] load metadata for |^resolve image config for |^docker-image:\/\/|^(?:\[[^\]]*\] )?FROM )(\S+)/
/** The layer of a step is made so soon after the step began, on a machine that has much to do. */
const LAYER_MADE_MS = 10_000
/** Times of files are read from a clock that is some milliseconds behind. */
const CLOCK_MS = 50
const milliseconds = ({ seconds = 0, nanos = 0 }: Moment): number => seconds * 1000 + nanos / 1e6
const isRunStep = (name: string): boolean => /^\[[^\]]*\] RUN /.test(name)

/**
 * Each step has its own line buffers, so that stages built at the same time do not cut each other's
 * lines.
 * @param owner for whom it is built: whoever prints very much takes turns with others.
 * @param onImage hears the name of each image before anything of it is used.
 */
export function createTraceReader(
  owner: string,
  onLog: (line: BuildLogLine) => void,
  onImage: (name: string) => void = () => {},
  now: () => number = () => performance.now(),
): TraceReader {
  const pace = createPace(owner, now)
  const steps = new Map<string, Step>()
  const running = new Map<string, number>()
  /** Whatever else is under way, and since when nothing is. */
  const others = new Set<string>()
  let alone_since = 0
  let failed: FailedStep | undefined
  const made: { from: number; to: number }[] = []
  let uses_cached = false

  function stepOf(digest: string): Step {
    let step = steps.get(digest)
    if (!step) {
      const lines: string[] = []
      const say = (stream: 'stdout' | 'stderr') =>
        createLineSplitter((text) => {
          lines.push(text)
          if (lines.length > REMEMBERED) lines.shift()
          onLog({ stream, text })
        })
      step = { announced: false, stdout: say('stdout'), stderr: say('stderr'), lines }
      steps.set(digest, step)
    }
    return step
  }

  function readVertex(vertex: Vertex): void {
    const name = vertex.name ?? ''
    const image = IMAGE.exec(name)?.[1]?.replace(/^docker-image:\/\//, '')
    if (image !== undefined && !steps.has(vertex.digest)) onImage(image)
    const step = stepOf(vertex.digest)
    if (vertex.started && !step.announced && isUserStep(name)) {
      step.announced = true
      onLog({ stream: 'system', text: `${clampMessage(name)}${vertex.cached ? ' (cached)' : ''}` })
    }
    if (vertex.started && !vertex.completed && !isRunStep(name)) others.add(vertex.digest)
    else if (vertex.started && !vertex.completed && !running.has(vertex.digest))
      running.set(vertex.digest, now())
    if (!vertex.completed) return
    running.delete(vertex.digest)
    if (others.delete(vertex.digest) && others.size === 0) alone_since = now()
    if (vertex.cached) uses_cached ||= isRunStep(name)
    else if (vertex.started && isUserStep(name))
      made.push({ from: milliseconds(vertex.started), to: milliseconds(vertex.completed) })
    step.stdout.end()
    step.stderr.end()
    // When one step fails, those that wait for it are reported as cancelled: they are not the
    // reason.
    if (vertex.error && !failed && !/context canceled/i.test(vertex.error))
      failed = { name, error: vertex.error, lines: step.lines }
  }

  return {
    async read(aux) {
      const trace: Trace = traceCodec.decode(Buffer.from(aux, 'base64'))
      for (const vertex of trace.vertexes ?? []) if (!vertex.completed) readVertex(vertex)
      for (const log of trace.logs ?? []) {
        const { stderr, stdout } = stepOf(log.vertex)
        for (let at = 0; log.msg && at < log.msg.length; at += PART_BYTES) {
          ;(log.stream === 2 ? stderr : stdout).write(log.msg.subarray(at, at + PART_BYTES))
          const rest = pace.rest()
          if (rest) await rest
        }
      }
      // After the logs of the same message, since they belong to the step that has ended.
      for (const vertex of trace.vertexes ?? []) if (vertex.completed) readVertex(vertex)
      for (const { short } of trace.warnings ?? [])
        if (short) onLog({ stream: 'system', text: `Warning: ${clampMessage(short.toString('utf8'))}` })
    },
    end() {
      for (const step of steps.values()) {
        step.stdout.end()
        step.stderr.end()
      }
    },
    get failed() {
      return failed
    },
    madeAt: (ms) =>
      made.some(({ from, to }) => ms >= from - CLOCK_MS && ms <= Math.min(to, from + LAYER_MADE_MS)),
    usesCached: () => uses_cached && (running.size === 0 || others.size > 0),
    runningFor: (now_ms) =>
      running.size === 0 || others.size > 0
        ? 0
        : now_ms - Math.max(alone_since, Math.min(...running.values())),
  }
}
