import { own } from '#server/kernel/own'
import { createChannel, type Channel } from './channel.ts'
import {
  EngineError,
  type EngineEvent,
  type Instance,
  type Labels,
  type RunOnceSpec,
  type RunResult,
} from '../engine.ts'
import type { FakeBehaviour } from './behaviour.ts'
import type { FakeImages } from './images.ts'
import {
  assignAddress,
  createFakeInstance,
  endFollowers,
  type FakeInstance,
  openServer,
  printLine,
  silence,
} from './instance.ts'
import type { FakeVolumes } from './volumes.ts'
import { DEFAULT_PUBLISHED_PORTS, requirePublishable } from '../published-ports.ts'
import { MAIN_PROCESS, type Workload } from '../workload.ts'

/** A real engine waits at least this long before it starts a crashed container again. */
const RESTART_DELAY_MS = 20

/** The pretended containers: which there are, and who hears of what happens to them. */
export function createFakeInstances(
  images: FakeImages,
  networks: ReadonlyMap<string, Labels>,
  volumes: FakeVolumes,
) {
  const alive = new Map<string, FakeInstance>()
  const removed = new Map<string, FakeInstance>()
  const listeners = new Set<Channel<EngineEvent>>()
  const tell = (event: EngineEvent) => {
    for (const listener of listeners) listener.push(event)
  }
  const life = createLife(images, tell)

  function destroy(instance: FakeInstance): void {
    life.end(instance)
    if (!alive.delete(instance.record.id)) return
    removed.set(instance.record.id, instance)
    instance.record.state = 'dead'
    life.emit('destroy', instance)
    endFollowers(instance)
  }

  async function ensure(spec: Workload): Promise<Instance[]> {
    requirePublishable(spec, DEFAULT_PUBLISHED_PORTS)
    volumes.require(spec)
    const image = images.find(spec.image)
    if (!image)
      throw new EngineError(
        'image_not_found',
        `The image ${spec.image} is not on this machine.`,
        'Deploy again to build or pull it.',
      )
    if (!networks.has(spec.network))
      throw new EngineError('not_found', `The network ${spec.network} does not exist.`)
    const own = [...alive.values()].filter(
      ({ record }) =>
        record.release_id === spec.release_id && record.process === (spec.process ?? MAIN_PROCESS),
    )
    for (const extra of own.filter(({ record }) => record.index >= spec.replicas)) destroy(extra)
    const desired = Array.from({ length: spec.replicas }, (_, index) => {
      const known = own.find(({ record }) => record.index === index)
      if (known && placeOf(known.spec) === placeOf(spec)) {
        known.record.limits = { cpus: spec.limits.cpus, memory_bytes: spec.limits.memory_bytes }
        return known
      }
      if (known) destroy(known)
      const created = createFakeInstance(spec, index, image.image.id)
      alive.set(created.record.id, created)
      return created
    })
    await Promise.all(desired.filter(({ record }) => record.state !== 'running').map(life.start))
    return desired.map(({ record }) => ({ ...record }))
  }

  return {
    ensure,
    destroy,
    die: life.die,
    emit: life.emit,
    /** Tells of the container of a one-off command, which is no instance. */
    async tellRun(spec: RunOnceSpec, run: () => Promise<RunResult>): Promise<RunResult> {
      const about = {
        instance_id: `run-${spec.release_id}-${spec.purpose}`,
        owner: spec.owner,
        release_id: spec.release_id,
        one_off: true as const,
      }
      const event = (kind: EngineEvent['kind'], exit_code?: number) =>
        tell({
          kind,
          ...about,
          at: new Date().toISOString(),
          ...(exit_code === undefined ? {} : { exit_code }),
        })
      event('start')
      try {
        const result = await run()
        event('die', result.exit_code)
        return result
      } finally {
        event('destroy')
      }
    },
    /** An instance that exists or, for its log, one that existed. */
    get(id: string): FakeInstance {
      const instance = alive.get(id) ?? removed.get(id)
      if (!instance) throw new EngineError('not_found', 'There is no such instance.')
      return instance
    },
    find: (id: string) => alive.get(id),
    all: (): FakeInstance[] => [...alive.values()],
    events: (signal: AbortSignal): AsyncIterable<EngineEvent> => listen(listeners, signal),
    endEvents(error?: unknown): void {
      for (const listener of listeners) listener.end(error)
      listeners.clear()
    },
  }
}
export type FakeInstances = ReturnType<typeof createFakeInstances>

/** What no container can be given while it is there: with another one, it is made anew. */
const placeOf = ({ network, mounts = [] }: FakeInstance['spec']) => JSON.stringify([network, mounts])

/** Whether an instance has all of these labels. */
export function carries({ record }: FakeInstance, labels: Labels): boolean {
  const carried: Labels = {
    [record.owner.kind]: record.owner.id,
    release: record.release_id,
    project: record.project_id,
    index: String(record.index),
    managed: 'true',
  }
  return Object.entries(labels).every(([key, value]) => own(carried, key) === value)
}

function listen(listeners: Set<Channel<EngineEvent>>, signal: AbortSignal): AsyncIterable<EngineEvent> {
  const stop = () => listener.end()
  const listener: Channel<EngineEvent> = createChannel<EngineEvent>(10_000, () => {
    listeners.delete(listener)
    signal.removeEventListener('abort', stop)
  })
  listeners.add(listener)
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return listener
}

/** Starts and ends instances as the behaviour of their image says. */
function createLife(images: FakeImages, onEvent: (event: EngineEvent) => void) {
  function emit(kind: EngineEvent['kind'], { record }: FakeInstance): void {
    onEvent({
      kind,
      instance_id: record.id,
      owner: record.owner,
      release_id: record.release_id,
      at: new Date().toISOString(),
      ...(kind === 'die' ? { exit_code: record.exit_code ?? 0 } : {}),
    })
  }

  function die(instance: FakeInstance, exit_code: number, oom_killed = false): void {
    if (instance.record.state !== 'running') return
    silence(instance)
    Object.assign(instance.record, {
      state: 'exited',
      exit_code,
      oom_killed,
      finished_at: new Date().toISOString(),
    })
    if (oom_killed) emit('oom', instance)
    emit('die', instance)
    if (!instance.supervised) return
    instance.record.state = 'restarting'
    instance.timers.push(
      setTimeout(() => {
        instance.record.restart_count += 1
        void start(instance)
      }, RESTART_DELAY_MS),
    )
  }

  async function start(instance: FakeInstance): Promise<void> {
    const behaviour = images.behaviourOf(instance.spec.image)
    if (behaviour.start === 'refused') {
      throw new EngineError(
        'start_failed',
        'The start command could not be run: executable file not found.',
        'Check the start command of the app.',
      )
    }
    Object.assign(instance.record, {
      state: 'running',
      started_at: new Date().toISOString(),
      oom_killed: false,
    })
    delete instance.record.exit_code
    delete instance.record.finished_at
    emit('start', instance)
    for (const line of behaviour.start_log ?? []) {
      if (typeof line === 'string') printLine(instance, line)
      else printLine(instance, line.text, line.stream)
    }
    if (behaviour.start === 'exits') return die(instance, behaviour.exit_code ?? 1)
    await openPort(instance, behaviour)
    if (behaviour.dies_after_ms !== undefined)
      instance.timers.push(setTimeout(() => die(instance, behaviour.exit_code ?? 1), behaviour.dies_after_ms))
  }

  /** Ends an instance for good. */
  function end(instance: FakeInstance): void {
    instance.supervised = false
    die(instance, 143)
    silence(instance)
  }
  return { emit, die, start, end }
}

async function openPort(instance: FakeInstance, behaviour: FakeBehaviour): Promise<void> {
  if (behaviour.start === 'never_listens') return assignAddress(instance)
  if (!behaviour.ready_after_ms) return openServer(instance, behaviour)
  assignAddress(instance)
  instance.timers.push(setTimeout(() => void openServer(instance, behaviour), behaviour.ready_after_ms))
}
