import { createChannel, type Channel } from './channel.ts'
import { EngineError, type EngineEvent, type Instance, type Labels, type ReleaseSpec } from './engine.ts'
import type { FakeImages } from './fake-images.ts'
import { assignAddress, createFakeInstance, endFollowers, type FakeInstance, listen, printLine, silence } from './fake-instance.ts'

/** A real engine waits at least this long before it starts a crashed container again. */
const RESTART_DELAY_MS = 20

/** The pretended containers: their life, and the events it makes. */
export function createFakeInstances(images: FakeImages, networks: ReadonlyMap<string, Labels>) {
  const alive = new Map<string, FakeInstance>()
  const removed = new Map<string, FakeInstance>()
  const listeners = new Set<Channel<EngineEvent>>()

  function emit(kind: EngineEvent['kind'], { record }: FakeInstance): void {
    const event: EngineEvent = {
      kind, instance_id: record.id, app_id: record.app_id, release_id: record.release_id, at: new Date().toISOString(),
      ...(kind === 'die' ? { exit_code: record.exit_code ?? 0 } : {}),
    }
    for (const listener of listeners) listener.push(event)
  }

  function die(instance: FakeInstance, exit_code: number, oom_killed = false): void {
    if (instance.record.state !== 'running') return
    silence(instance)
    Object.assign(instance.record, { state: 'exited', exit_code, oom_killed, finished_at: new Date().toISOString() })
    if (oom_killed) emit('oom', instance)
    emit('die', instance)
    if (!instance.supervised) return
    instance.record.state = 'restarting'
    instance.timers.push(setTimeout(() => {
      instance.record.restart_count += 1
      void start(instance)
    }, RESTART_DELAY_MS))
  }

  async function start(instance: FakeInstance): Promise<void> {
    const behaviour = images.behaviourOf(instance.spec.image)
    if (behaviour.start === 'refused') {
      throw new EngineError('start_failed', 'The start command could not be run: executable file not found.', 'Check the start command of the app.')
    }
    Object.assign(instance.record, { state: 'running', started_at: new Date().toISOString(), oom_killed: false })
    delete instance.record.exit_code
    delete instance.record.finished_at
    emit('start', instance)
    for (const line of behaviour.start_log ?? []) {
      if (typeof line === 'string') printLine(instance, line)
      else printLine(instance, line.text, line.stream)
    }
    if (behaviour.start === 'exits') return die(instance, behaviour.exit_code ?? 1)
    if (behaviour.start === 'never_listens') assignAddress(instance)
    else if (behaviour.ready_after_ms) {
      assignAddress(instance)
      instance.timers.push(setTimeout(() => void listen(instance, behaviour), behaviour.ready_after_ms))
    } else await listen(instance, behaviour)
    if (behaviour.dies_after_ms !== undefined) {
      instance.timers.push(setTimeout(() => die(instance, behaviour.exit_code ?? 1), behaviour.dies_after_ms))
    }
  }

  function destroy(instance: FakeInstance): void {
    instance.supervised = false
    die(instance, 143)
    silence(instance)
    if (!alive.delete(instance.record.id)) return
    removed.set(instance.record.id, instance)
    instance.record.state = 'dead'
    emit('destroy', instance)
    endFollowers(instance)
  }

  async function ensure(spec: ReleaseSpec): Promise<Instance[]> {
    const image = images.find(spec.image)
    if (!image) throw new EngineError('image_not_found', `The image ${spec.image} is not on this machine.`, 'Deploy again to build or pull it.')
    if (!networks.has(spec.network)) throw new EngineError('not_found', `The network ${spec.network} does not exist.`)
    const own = [...alive.values()].filter((instance) => instance.spec.release_id === spec.release_id)
    for (const extra of own.filter(({ record }) => record.index >= spec.replicas)) destroy(extra)
    const wanted = Array.from({ length: spec.replicas }, (_, index) => {
      const known = own.find(({ record }) => record.index === index)
      if (known) return known
      const created = createFakeInstance(spec, index, image.image.id)
      alive.set(created.record.id, created)
      return created
    })
    await Promise.all(wanted.filter(({ record }) => record.state !== 'running').map(start))
    return wanted.map(({ record }) => ({ ...record }))
  }

  /** An instance that exists or, for its log, one that existed. */
  function get(id: string): FakeInstance {
    const instance = alive.get(id) ?? removed.get(id)
    if (!instance) throw new EngineError('not_found', 'There is no such instance.')
    return instance
  }

  return {
    ensure, destroy, die, get,
    find: (id: string) => alive.get(id),
    all: (): FakeInstance[] => [...alive.values()],
    carries({ record }: FakeInstance, labels: Labels): boolean {
      const own: Labels = { app: record.app_id, release: record.release_id, project: record.project_id, index: String(record.index), managed: 'true' }
      return Object.entries(labels).every(([key, value]) => own[key] === value)
    },
    events(signal: AbortSignal): AsyncIterable<EngineEvent> {
      const stop = () => listener.end()
      const listener: Channel<EngineEvent> = createChannel<EngineEvent>(10_000, () => {
        listeners.delete(listener)
        signal.removeEventListener('abort', stop)
      })
      listeners.add(listener)
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
      return listener
    },
    endEvents(error?: unknown): void {
      for (const listener of listeners) listener.end(error)
      listeners.clear()
    },
  }
}
