import { own } from '#server/kernel/own'
import type { Engine, Labels } from '../engine.ts'
import { EngineError } from '../engine.ts'
import type { FakeBehaviour, FakeMatch } from './behaviour.ts'
import { createFakeImages, type FakeImages } from './images.ts'
import { type FakeInstance, printLine, silence } from './instance.ts'
import { carries, createFakeInstances, type FakeInstances } from './instances.ts'
import type { DiskCache } from '../disk-usage.ts'
import { fakeDisk } from './disk.ts'
import { execFake } from './exec.ts'
import { createFakeMembers, type FakeMembers } from './members.ts'
import { createFakeTerminals } from './terminal.ts'
import { runFake } from './run.ts'
import { volumeCalls } from './volume-calls.ts'
import { fakeWatch } from './watch.ts'
import { createFakeVolumes, type FakeVolumes } from './volumes.ts'
import { clampMessage } from '../messages.ts'

export type { FakeBehaviour, FakeMatch, FakeSubject } from './behaviour.ts'

/** One call that was made, in order; signals are left out of `args`. */
export interface FakeCall {
  method: keyof Engine
  args: unknown[]
}

/**
 * An engine in memory, **for tests only**: it builds nothing and isolates nothing. Instances are
 * real HTTP servers on loopback addresses of their own (Linux), so that probes and proxies work
 * against them.
 */
export interface FakeEngine extends Engine {
  /**
   * Sets how images that match are treated from now on; a later call for the same match replaces
   * the earlier one.
   */
  behave(match: FakeMatch, behaviour: FakeBehaviour): void
  /** Puts an image there, as if it had been pulled before. */
  addImage(reference: string, image?: { exposed_ports?: number[]; labels?: Labels }): void
  /** Ends an instance's process; a supervised one is started again, like the engine would. */
  crash(instance_id: string, exit_code?: number, oom_killed?: boolean): void
  /** A process of an instance that is not its first is killed for memory: the instance runs on. */
  killChild(instance_id: string): void
  /** Removes an instance behind Portreeve's back. */
  vanish(instance_id: string): void
  /** Prints a line into an instance's log. */
  print(instance_id: string, text: string, stream?: 'stdout' | 'stderr'): void
  /** While true, every call throws `unavailable` and event streams end; instances serve on. */
  setUnavailable(unavailable: boolean): void
  /** Whether a member of the cluster answers; the instances of one that does not are shown as ended. */
  setMemberSilent(node_id: string, is_silent: boolean): void
  /** The next call of this method is refused and changes nothing. */
  failNext(method: keyof Engine): void
  /** Every call so far. */
  readonly calls: readonly FakeCall[]
  /** Says how much an instance wrote into its container; 0 before. */
  fillLayer(instance_id: string, bytes: number): void
  /** From now on a volume holds so much. */
  fillVolume(volume_id: string, bytes: number): void
  /** Removes a volume behind Portreeve's back. */
  loseVolume(volume_id: string): void
  /** Entries of its build cache, to be added by a test. */
  readonly buildCache: DiskCache[]
  /** Bytes of its disk that copies may take; by itself nothing is known of it. */
  readonly disk: { free_for_copies?: number }
  /** Ids of the volumes that exist. */
  volumes(): string[]
  /** Names of the networks that exist. */
  networks(): string[]
}

interface State {
  build_cache: DiskCache[]
  disk: { free_for_copies?: number }
  calls: FakeCall[]
  networks: Map<string, Labels>
  behaviours: { match: FakeMatch; behaviour: FakeBehaviour }[]
  images: FakeImages
  volumes: FakeVolumes
  instances: FakeInstances
  members: FakeMembers
  unavailable: boolean
  failing: Set<keyof Engine>
  layers: Map<string, number>
  /** Records the call and refuses it while the engine is meant to be away. */
  called(method: keyof Engine, ...args: unknown[]): void
}

/** Creates an empty fake engine. Call `close()` at the end of the test: it stops the instances' servers. */
export function createFakeEngine(): FakeEngine {
  const networks = new Map<string, Labels>()
  const behaviours: State['behaviours'] = []
  const images = createFakeImages(behaviours)
  const volumes = createFakeVolumes()
  const state: State = {
    build_cache: [],
    disk: {},
    calls: [],
    networks,
    behaviours,
    images,
    volumes,
    instances: createFakeInstances(images, networks, volumes),
    members: createFakeMembers(),
    unavailable: false,
    failing: new Set(),
    layers: new Map(),
    called(method, ...args) {
      state.calls.push({ method, args: args.filter((arg) => !(arg instanceof AbortSignal)) })
      if (state.unavailable)
        throw new EngineError(
          'unavailable',
          'The container engine does not answer.',
          'Start the container engine, then try again.',
        )
      if (state.failing.delete(method))
        throw new EngineError('failed', 'The container engine could not do this.')
    },
  }
  return {
    ...controls(state),
    ...hostCalls(state),
    ...imageCalls(state),
    ...fakeDisk(state),
    ...releaseCalls(state),
    ...volumeCalls(state),
    ...fakeWatch(state),
  }
}

/** What a test does to the engine. */
function controls(state: State): Omit<FakeEngine, keyof Engine> {
  const { instances, networks, behaviours } = state
  return {
    calls: state.calls,
    behave(match, behaviour) {
      const known = behaviours.find((entry) => entry.match === match)
      if (known) known.behaviour = behaviour
      else behaviours.unshift({ match, behaviour })
    },
    addImage: (reference, image) => void state.images.add(reference, image),
    crash: (id, exit_code = 1, oom_killed = false) => instances.die(instances.get(id), exit_code, oom_killed),
    killChild: (id) => instances.emit('oom', instances.get(id)),
    vanish: (id) => instances.destroy(instances.get(id)),
    fillLayer: (id, bytes) => void state.layers.set(id, bytes),
    fillVolume: (id, bytes) => state.volumes.fill(id, bytes),
    print: (id, text, stream) => printLine(instances.get(id), text, stream),
    buildCache: state.build_cache,
    disk: state.disk,
    networks: () => [...networks.keys()],
    loseVolume: (id) => state.volumes.lose(id),
    volumes: () => state.volumes.ids(),
    setMemberSilent: (node, is_silent) => state.members.setSilent(node, is_silent),
    failNext: (method) => void state.failing.add(method),
    setUnavailable(value) {
      state.unavailable = value
      if (value) instances.endEvents(new EngineError('unavailable', 'The container engine went away.'))
    },
  }
}

function hostCalls({
  called,
  networks,
  instances,
}: State): Pick<Engine, 'version' | 'ensureNetwork' | 'removeNetwork' | 'removeLabelled' | 'close'> {
  return {
    async version() {
      called('version')
      return {
        version: 'fake',
        api_version: '1.41',
        os: 'linux',
        arch: 'amd64',
        cpus: 2,
        memory_bytes: 4 * 1024 ** 3,
        buildkit: true,
      }
    },
    async ensureNetwork(name, labels) {
      called('ensureNetwork', name, labels)
      if (!networks.has(name)) networks.set(name, labels)
    },
    async removeNetwork(name) {
      called('removeNetwork', name)
      if (instances.all().some(({ spec }) => spec.network === name))
        throw new EngineError('conflict', `The network ${clampMessage(name)} is still in use.`)
      networks.delete(name)
    },
    async removeLabelled(labels) {
      called('removeLabelled', labels)
      for (const instance of instances.all()) if (carries(instance, labels)) instances.destroy(instance)
      for (const [name, carried] of networks)
        if (Object.entries(labels).every(([key, value]) => own(carried, key) === value)) networks.delete(name)
    },
    async close() {
      for (const instance of instances.all()) silence(instance)
      instances.endEvents()
    },
  }
}

function imageCalls({
  called,
  images,
  instances,
}: State): Pick<Engine, 'buildImage' | 'pullImage' | 'findImage' | 'listImages' | 'removeImage'> {
  return {
    async buildImage(spec, signal) {
      called('buildImage', spec)
      return images.build(spec, signal)
    },
    async pullImage(reference, options, signal) {
      called('pullImage', reference, options)
      return images.pull(reference, options, signal)
    },
    async findImage(reference) {
      called('findImage', reference)
      return images.find(reference)?.image
    },
    async listImages(labels) {
      called('listImages', labels)
      return images.list(labels)
    },
    async removeImage(reference) {
      called('removeImage', reference)
      const found = images.find(reference)
      if (found && instances.all().some(({ record }) => record.image === found.image.id)) return false
      images.remove(reference)
      return true
    },
  }
}

function releaseCalls({
  called,
  images,
  instances,
  members,
  volumes,
}: State): Pick<
  Engine,
  | 'ensureRelease'
  | 'superviseRelease'
  | 'pauseRelease'
  | 'removeRelease'
  | 'instances'
  | 'runningInstances'
  | 'runOnce'
  | 'removeLeftRuns'
  | 'exec'
  | 'openTerminal'
  | 'hangUpTerminal'
> {
  const terminals = createFakeTerminals()
  const ofRelease = (release_id: string) =>
    instances.all().filter(({ spec }) => spec.release_id === release_id)
  const end = (instance: FakeInstance) =>
    members.isSilent(instance) ? members.forget(instance.record.id) : instances.destroy(instance)
  return {
    async ensureRelease(spec, signal) {
      called('ensureRelease', spec)
      if (signal.aborted) throw new EngineError('aborted', 'Starting the release was cancelled.')
      members.require(spec)
      return instances.ensure(spec)
    },
    async superviseRelease(release_id, supervised) {
      called('superviseRelease', release_id, supervised)
      for (const instance of ofRelease(release_id)) instance.supervised = supervised
    },
    async pauseRelease(release_id, paused) {
      called('pauseRelease', release_id, paused)
      for (const { record } of ofRelease(release_id))
        if (record.state === (paused ? 'running' : 'paused')) record.state = paused ? 'paused' : 'running'
    },
    async removeRelease(release_id, grace_s, process) {
      called('removeRelease', release_id, grace_s)
      for (const instance of ofRelease(release_id))
        if (!process || instance.record.process === process) end(instance)
    },
    async instances(filter) {
      called('instances', filter)
      const { owner, release_id, project_id } = filter
      return instances
        .all()
        .flatMap((instance) => members.seen(instance) ?? [])
        .filter(
          (record) =>
            (!owner || (record.owner.kind === owner.kind && record.owner.id === owner.id)) &&
            (!release_id || record.release_id === release_id) &&
            (!project_id || record.project_id === project_id),
        )
    },
    async runningInstances() {
      called('runningInstances')
      return instances
        .all()
        .filter((instance) => members.seen(instance)?.state === 'running')
        .map(({ record: { id, owner } }) => ({ id, owner }))
    },
    async runOnce(spec, signal) {
      called('runOnce', spec)
      volumes.require(spec)
      members.require(spec)
      return instances.tellRun(spec, () => runFake(images.behaviourOf(spec.image), spec, signal))
    },
    removeLeftRuns: async () => called('removeLeftRuns'),
    async exec(instance_id, spec, signal) {
      called('exec', instance_id, spec)
      const instance = instances.get(instance_id)
      if (instance.record.state !== 'running')
        throw new EngineError('conflict', 'The container does not run.')
      return execFake(images.behaviourOf(instance.spec.image), spec, instance.spec, signal)
    },
    async openTerminal(instance_id, spec) {
      called('openTerminal', instance_id, spec)
      const instance = instances.get(instance_id)
      if (instance.record.state !== 'running')
        throw new EngineError('conflict', 'The container does not run.')
      return terminals.open(instance_id, spec)
    },
    async hangUpTerminal(instance_id, session) {
      called('hangUpTerminal', instance_id, session)
      terminals.hangUp(session)
    },
  }
}
