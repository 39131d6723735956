import { own } from '#server/kernel/own'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Instance, LogLine, RunOnceSpec, RunResult } from '../engine.ts'
import type { ContainerSpec, ExecSpec } from '../workload.ts'

/** How the fake engine treats an image: whatever is left out goes well. */
export interface FakeBehaviour {
  /** The way a build of it goes wrong; `hang` lasts until it is aborted or its time limit passes. */
  build?: 'fail' | 'out_of_memory' | 'timeout' | 'disk_full' | 'missing_base' | 'unavailable' | 'hang'
  /** Lines of the build log, before the outcome. */
  build_log?: string[]
  build_duration_ms?: number
  pull?: 'missing' | 'denied' | 'unavailable' | 'hang'
  /** What happens at start; `refused` is a command that cannot be run, `exits` one that ends at once. */
  start?: 'listens' | 'never_listens' | 'exits' | 'refused'
  /** Lines that an instance prints when it starts; plain texts go to stdout. */
  start_log?: (string | Pick<LogLine, 'stream' | 'text'>)[]
  /** A started instance listens only after this time. */
  ready_after_ms?: number
  /** A started instance dies by itself after this time. */
  dies_after_ms?: number
  /** Exit code of `exits` and `dies_after_ms`; 1 unless told. */
  exit_code?: number
  exposed_ports?: number[]
  /** Answers requests to an instance; the default answers 200 with the instance as JSON. */
  respond?(request: IncomingMessage, response: ServerResponse, instance: Instance): void
  /**
   * Outcome of one-off commands; the default is exit code 0 without output. `hang` lasts until aborted or
   * timed out.
   */
  run?(spec: RunOnceSpec): Partial<RunResult> & { lines?: string[]; hang?: boolean }
  /**
   * What a command inside an instance prints and how it ends, once its input has ended; the default echoes the
   * input and succeeds. `hang` lasts until it is aborted.
   */
  exec?(spec: ExecSpec, input: Buffer, container: ContainerSpec): FakeExecOutcome | Promise<FakeExecOutcome>
}

export interface FakeExecOutcome {
  exit_code?: number
  stdout?: string | Buffer
  stderr?: string
  /** Goes on after its input has ended. */
  hang?: boolean
}

/** What a behaviour is matched against. */
export interface FakeSubject {
  /** Image reference or tag, e.g. `portreeve/app_x:dep_y`. */
  reference: string
  /** The Dockerfile it was built from; empty for pulled images. */
  dockerfile: string
  labels: Record<string, string>
}

/** An exact reference, a prefix that ends in `*`, a label as `key=value`, or a predicate. */
export type FakeMatch = string | ((subject: FakeSubject) => boolean)

/** Whether a subject is meant by a match. */
export function matches(match: FakeMatch, subject: FakeSubject): boolean {
  if (typeof match === 'function') return match(subject)
  if (match.endsWith('*')) return subject.reference.startsWith(match.slice(0, -1))
  const [key, value] = match.split('=')
  if (value !== undefined && key !== undefined) return own(subject.labels, key) === value
  return subject.reference === match
}
