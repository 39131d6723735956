import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { BuildSpec, Engine, EngineEvent, LogLine, RunOnceSpec } from '#server/platform/engine/engine'
import type { Workload } from '#server/platform/engine/workload'
import { poll } from '#test/support/poll'
import { testWorkload } from '#test/support/workload'

/** What the contract needs to know about the engine under test. */
export interface ContractSubject {
  engine: Engine
  /** An image that is there; a container of it runs until it is stopped. */
  image: string
  /** Lets an instance's process exit with code 3, by itself as the engine sees it. */
  crash(instance_id: string): Promise<void>
  /**
   * Text of a Dockerfile that builds, one that fails with exit code 7, one whose step never ends, one without
   * a base.
   */
  dockerfiles: { good: string; failing: string; endless: string; baseless: string }
}

/**
 * The guarantees that every engine adapter gives. Runs against the fake in memory and against a real engine.
 */
export function engineContract(title: string, open: () => Promise<ContractSubject>): void {
  describe(title, () => {
    let subject: ContractSubject
    let engine: Engine
    const ids = { app_id: newId('app'), project_id: newId('prj') }
    const owner = { kind: 'app' as const, id: ids.app_id }
    const network = `test-${ids.project_id}`
    const calm = new AbortController().signal
    let release_id = ''
    let context = ''

    const release = (more: Partial<Workload> = {}): Workload =>
      testWorkload({
        owner,
        project_id: ids.project_id,
        release_id,
        image: subject.image,
        shell_command: 'echo ready; echo warned >&2; trap "exit 3" USR1; sleep 600 & wait $!',
        environment: { PORT: '8080' },
        network,
        ...more,
      })
    const run = (more: Partial<RunOnceSpec> = {}): RunOnceSpec => {
      const { replicas: _, ...spec } = release()
      return { ...spec, purpose: 'task', timeout_ms: 30_000, onLog: () => {}, ...more }
    }
    const build = (dockerfile: string, more: Partial<BuildSpec> = {}): BuildSpec => ({
      context,
      dockerfile,
      tag: `portreeve-test/${ids.app_id}:${release_id}`,
      labels: { app: ids.app_id, project: ids.project_id },
      build_args: {},
      secrets: {},
      no_cache: true,
      cache_scope: 'prj_test',
      limits: { cpus: 1, memory_bytes: 256 * 1024 ** 2, timeout_ms: 60_000 },
      onLog: () => {},
      ...more,
    })
    async function lines(log: AsyncIterable<LogLine>): Promise<string[]> {
      const read: string[] = []
      for await (const { stream, text } of log) read.push(`${stream} ${text}`)
      return read
    }

    beforeAll(async () => {
      subject = await open()
      engine = subject.engine
      context = mkdtempSync(join(tmpdir(), 'portreeve-contract-'))
      writeFileSync(join(context, 'hello.txt'), 'hello')
      await engine.ensureNetwork(network, { project: ids.project_id })
    })
    beforeEach(() => {
      release_id = newId('rel')
    })
    afterEach(() => engine.removeRelease(release_id, 0))
    afterAll(async () => {
      await engine.removeLabelled({ project: ids.project_id })
      for (const image of await engine.listImages({ project: ids.project_id }))
        await engine.removeImage(image.id)
      await engine.removeNetwork(network)
      await engine.close()
      rmSync(context, { recursive: true })
    })

    test('tells its version', async () => {
      expect(await engine.version()).toMatchObject({
        version: expect.any(String),
        os: 'linux',
        cpus: expect.any(Number),
      })
    })

    test('a network is made once, also by two callers at once, and removing a missing one is fine', async () => {
      const name = `test-${newId('prj')}`
      await Promise.all([
        engine.ensureNetwork(name, { project: ids.project_id }),
        engine.ensureNetwork(name, { project: ids.project_id }),
      ])
      await engine.ensureNetwork(name, { project: ids.project_id })
      await engine.removeNetwork(name)
      await engine.removeNetwork(name)
    })

    describe('builds', () => {
      test('answer an image that can be found by its id and tag, and print their steps', async () => {
        const log: string[] = []
        const image = await engine.buildImage(
          build(subject.dockerfiles.good, { onLog: ({ text }) => log.push(text) }),
          calm,
        )
        expect(image).toMatchObject({
          id: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
          exposed_ports: [8080],
        })
        expect(await engine.findImage(image.id)).toMatchObject({ id: image.id })
        expect(await engine.findImage(`portreeve-test/${ids.app_id}:${release_id}`)).toMatchObject({
          id: image.id,
        })
        expect(await engine.listImages({ app: ids.app_id })).toContainEqual(
          expect.objectContaining({ id: image.id }),
        )
        expect(log.some((line) => line.includes('FROM'))).toBe(true)
        expect(await engine.removeImage(image.id)).toBe(true)
        expect(await engine.findImage(image.id)).toBeUndefined()
      })

      test('say which command failed and how', async () => {
        await expect(engine.buildImage(build(subject.dockerfiles.failing), calm)).rejects.toMatchObject({
          code: 'build_failed',
          message: expect.stringMatching(/^The command `.+` failed with exit code \d+\.$/),
        })
      })

      test('reject as aborted when they are cancelled, not as a success', async () => {
        const stop = new AbortController()
        const building = engine.buildImage(
          build(subject.dockerfiles.endless, {
            onLog: ({ text }) => {
              if (/sleep/.test(text)) stop.abort()
            },
          }),
          stop.signal,
        )
        await expect(building).rejects.toMatchObject({ code: 'aborted' })
      })

      test('end at their time limit', async () => {
        const limits = { cpus: 1, memory_bytes: 256 * 1024 ** 2, timeout_ms: 1_500 }
        await expect(
          engine.buildImage(build(subject.dockerfiles.endless, { limits }), calm),
        ).rejects.toMatchObject({
          code: 'timeout',
        })
      })

      test('name a base image that is missing', async () => {
        await expect(engine.buildImage(build(subject.dockerfiles.baseless), calm)).rejects.toMatchObject({
          code: 'image_not_found',
          message: expect.stringContaining('nosuch:1'),
          hint: expect.stringContaining('npm run images'),
        })
      })
    })

    describe('releases', () => {
      test('start as many instances as asked, each with an address of its own', async () => {
        const started = await engine.ensureRelease(release({ replicas: 3 }), calm)
        expect(started.map(({ index, state }) => ({ index, state }))).toEqual(
          [0, 1, 2].map((index) => ({ index, state: 'running' })),
        )
        expect(new Set(started.map(({ address }) => address)).size).toBe(3)
        expect(await engine.instances({ release_id })).toEqual(started)
        expect(await engine.instances({ owner: { kind: 'app', id: newId('app') } })).toEqual([])
        const of_release = (await engine.runningInstances()).filter(({ id }) =>
          started.some((one) => one.id === id),
        )
        expect(of_release.map(({ owner }) => owner)).toEqual(started.map(({ owner }) => owner))
      })

      test('are made anew in the network of another project', async () => {
        const other = `test-${newId('prj')}`
        const [before] = await engine.ensureRelease(release(), calm)
        await engine.ensureNetwork(other, { project: ids.project_id })
        const [after] = await engine.ensureRelease(release({ network: other, project_id: 'prj_other' }), calm)
        expect([after!.id === before!.id, after!.project_id]).toEqual([false, 'prj_other'])
        expect((await engine.instances({ release_id })).map(({ id }) => id)).toEqual([after!.id])
        await engine.removeRelease(release_id, 0)
        await engine.removeNetwork(other)
      })

      test('take new limits while they run, without being started again', async () => {
        const [before] = await engine.ensureRelease(release(), calm)
        const desired = { cpus: 0.25, memory_bytes: 96 * 1024 ** 2 }
        const [after] = await engine.ensureRelease(
          release({ limits: { ...desired, pids: 64 }, reservations: { memory_bytes: 16 * 1024 ** 2 } }),
          calm,
        )
        expect([after!.id, after!.started_at]).toEqual([before!.id, before!.started_at])
        const [seen] = await engine.instances({ release_id })
        expect(seen!.limits).toEqual(desired)
        // Once more with what it was made with: still the same container.
        const [again] = await engine.ensureRelease(release(), calm)
        expect(again!.id).toBe(before!.id)
      })

      test('adopt what runs already, and follow the number of replicas up and down', async () => {
        const first = await engine.ensureRelease(release({ replicas: 2 }), calm)
        expect((await engine.ensureRelease(release({ replicas: 2 }), calm)).map(({ id }) => id)).toEqual(
          first.map(({ id }) => id),
        )
        const more = await engine.ensureRelease(release({ replicas: 3 }), calm)
        expect(more.slice(0, 2).map(({ id }) => id)).toEqual(first.map(({ id }) => id))
        await engine.ensureRelease(release({ replicas: 1 }), calm)
        expect((await engine.instances({ release_id })).map(({ id }) => id)).toEqual([first[0]!.id])
      })

      test('start an instance again that has exited, at the same address', async () => {
        const [before] = await engine.ensureRelease(release(), calm)
        await subject.crash(before!.id)
        await poll(async () => (await engine.instances({ release_id }))[0]?.state === 'exited')
        const [after] = await engine.ensureRelease(release(), calm)
        expect(after).toMatchObject({ id: before!.id, address: before!.address, state: 'running' })
      })

      test('are restarted after a crash only while they are supervised', async () => {
        const [instance] = await engine.ensureRelease(release(), calm)
        await engine.superviseRelease(release_id, true)
        await subject.crash(instance!.id)
        await poll(async () =>
          (await engine.instances({ release_id })).some(
            ({ restart_count, state }) => restart_count > 0 && state === 'running',
          ),
        )
        expect((await engine.instances({ release_id }))[0]).toMatchObject({
          id: instance!.id,
          address: instance!.address,
        })
      })

      test('stand still while they are paused, go on afterwards, and can be removed in between', async () => {
        const [instance] = await engine.ensureRelease(release(), calm)
        const stateOf = async () => (await engine.instances({ release_id }))[0]?.state
        for (const [paused, state] of [
          [true, 'paused'],
          [true, 'paused'],
          [false, 'running'],
          [false, 'running'],
          [true, 'paused'],
        ] as const) {
          await engine.pauseRelease(release_id, paused)
          expect(await stateOf()).toBe(state)
        }
        expect((await engine.instances({ release_id }))[0]!.id).toBe(instance!.id)
        await engine.removeRelease(release_id, 1)
        expect(await stateOf()).toBe(undefined)
        await engine.pauseRelease(release_id, true)
      })

      test('vanish with all their instances, and removing them twice is fine', async () => {
        await engine.ensureRelease(release({ replicas: 2 }), calm)
        await engine.removeRelease(release_id, 1)
        await engine.removeRelease(release_id, 1)
        expect(await engine.instances({ release_id })).toEqual([])
      })

      test('of an image that is gone are refused', async () => {
        await expect(
          engine.ensureRelease(release({ image: `sha256:${'1'.repeat(64)}` }), calm),
        ).rejects.toMatchObject({
          code: 'image_not_found',
        })
      })

      test('protect their image from being removed', async () => {
        const [instance] = await engine.ensureRelease(release(), calm)
        expect(await engine.removeImage(instance!.image)).toBe(false)
        expect(await engine.removeImage(`sha256:${'2'.repeat(64)}`)).toBe(true)
      })
    })

    describe('one-off commands', () => {
      test('tell their exit code and leave nothing behind', async () => {
        expect(await engine.runOnce(run({ shell_command: 'exit 0' }), calm)).toMatchObject({
          exit_code: 0,
          oom_killed: false,
          timed_out: false,
        })
        expect(await engine.instances({ release_id })).toEqual([])
      })

      test('end at their time limit', async () => {
        expect(
          await engine.runOnce(run({ shell_command: 'sleep 600', timeout_ms: 1_000 }), calm),
        ).toMatchObject({
          timed_out: true,
          exit_code: 137,
        })
      })

      test('are aborted by their signal', async () => {
        const stop = new AbortController()
        const running = engine.runOnce(run({ shell_command: 'sleep 600' }), stop.signal)
        setTimeout(() => stop.abort(), 300)
        await expect(running).rejects.toMatchObject({ code: 'aborted' })
      })
    })

    describe('workloads', () => {
      test('keep their owner, whatever its kind, and are found by it', async () => {
        const database = { kind: 'database' as const, id: newId('db') }
        const [instance] = await engine.ensureRelease(release({ owner: database }), calm)
        expect(instance).toMatchObject({ owner: database, process: 'web' })
        expect(await engine.instances({ owner: database })).toEqual([instance])
        expect(await engine.instances({ owner: { kind: 'app', id: database.id } })).toEqual([])
      })

      test('run several processes of one release, which are counted and ended apart', async () => {
        await engine.ensureRelease(release(), calm)
        await engine.ensureRelease(release({ process: 'worker', replicas: 2 }), calm)
        await engine.ensureRelease(release(), calm)
        const names = async () =>
          (await engine.instances({ release_id })).map(({ process, index }) => `${process} ${index}`)
        expect(await names()).toEqual(['web 0', 'worker 0', 'worker 1'])
        await engine.removeRelease(release_id, 0, 'worker')
        expect(await names()).toEqual(['web 0'])
      })

      test('publish ports from the allowed range and for one replica only', async () => {
        const ports = (host_port: number) => [{ container_port: 8080, host_port, protocol: 'tcp' as const }]
        for (const host_port of [22, 80, 443, 2375, 9000, 9999, 60_000, 0, -1, 20_000.5])
          await expect(
            engine.ensureRelease(release({ ports: ports(host_port) }), calm),
          ).rejects.toMatchObject({
            code: 'port_refused',
          })
        await expect(
          engine.ensureRelease(release({ ports: ports(20_001), replicas: 2 }), calm),
        ).rejects.toMatchObject({ code: 'port_refused' })
        const [instance] = await engine.ensureRelease(release({ ports: ports(20_001) }), calm)
        expect(instance).toMatchObject({ state: 'running' })
      })
    })

    describe('volumes', () => {
      let volume_id = ''
      const mounts = () => [{ kind: 'volume' as const, volume_id, path: '/data', read_only: false }]
      beforeEach(() => {
        volume_id = newId('vol')
      })
      afterEach(async () => {
        await engine.removeRelease(release_id, 0)
        await engine.removeVolume(volume_id)
      })

      test('are made once, measured, and removed only while no container holds them', async () => {
        await engine.ensureVolume(volume_id, { project: ids.project_id })
        await engine.ensureVolume(volume_id, { project: ids.project_id })
        expect(await engine.findVolume(volume_id)).toMatchObject({ id: volume_id })
        await engine.ensureRelease(release({ mounts: mounts() }), calm)
        expect((await engine.volumeUsage()).get(volume_id)).toMatchObject({
          containers: 1,
          used_bytes: expect.any(Number),
        })
        await expect(engine.removeVolume(volume_id)).rejects.toMatchObject({ code: 'conflict' })
        await engine.removeRelease(release_id, 0)
        await engine.removeVolume(volume_id)
        await engine.removeVolume(volume_id)
        expect(await engine.findVolume(volume_id)).toBeUndefined()
      })

      test('that are gone refuse the start, and no empty one comes in their place', async () => {
        const missing = { code: 'volume_missing', message: expect.stringContaining('no longer') }
        await expect(engine.ensureRelease(release({ mounts: mounts() }), calm)).rejects.toMatchObject(missing)
        await expect(engine.runOnce(run({ mounts: mounts() }), calm)).rejects.toMatchObject(missing)
        expect(await engine.findVolume(volume_id)).toBeUndefined()
        expect(await engine.instances({ release_id })).toEqual([])
      })
    })

    describe('commands inside an instance', () => {
      test('take input, print output and tell their exit code', async () => {
        const [instance] = await engine.ensureRelease(release(), calm)
        const command = await engine.exec(instance!.id, { command: ['cat'] }, calm)
        command.stdin.end('héllo')
        expect(await text(command.stdout)).toBe('héllo')
        expect(await command.done).toEqual({ exit_code: 0, stderr: '' })
      })

      test('keep errors apart from output', async () => {
        const [instance] = await engine.ensureRelease(release(), calm)
        const command = await engine.exec(
          instance!.id,
          { command: ['sh', '-c', 'echo out; echo "$WHY" >&2; exit 3'], environment: { WHY: 'because' } },
          calm,
        )
        command.stdin.end()
        expect(await text(command.stdout)).toBe('out\n')
        expect(await command.done).toEqual({ exit_code: 3, stderr: 'because\n' })
      })

      test('end with their signal', async () => {
        const [instance] = await engine.ensureRelease(release(), calm)
        const stop = new AbortController()
        const command = await engine.exec(instance!.id, { command: ['sleep', '600'] }, stop.signal)
        command.stdin.end()
        stop.abort()
        await expect(command.done).rejects.toMatchObject({ code: 'aborted' })
      })
    })

    test('logs are read from both streams, by their end, and followed until the reader leaves', async () => {
      const [instance] = await engine.ensureRelease(release(), calm)
      await poll(async () => (await lines(engine.logs(instance!.id, {}))).length >= 2)
      expect((await lines(engine.logs(instance!.id, {}))).toSorted()).toEqual([
        'stderr warned',
        'stdout ready',
      ])
      expect(await lines(engine.logs(instance!.id, { tail: 1 }))).toHaveLength(1)
      const stop = new AbortController()
      const seen: string[] = []
      for await (const { text } of engine.logs(instance!.id, { follow: true }, stop.signal)) {
        seen.push(text)
        if (seen.length === 2) stop.abort()
      }
      expect(seen.toSorted()).toEqual(['ready', 'warned'])
    })

    test('logs are followed over a restart, and end when the instance is removed', async () => {
      const [instance] = await engine.ensureRelease(release(), calm)
      const seen: string[] = []
      const following = (async () => {
        for await (const { text } of engine.logs(instance!.id, { follow: true })) seen.push(text)
      })()
      await poll(() => seen.length === 2)
      await subject.crash(instance!.id)
      await poll(async () => (await engine.instances({ release_id }))[0]?.state === 'exited')
      await engine.ensureRelease(release(), calm)
      await poll(() => seen.length >= 4)
      await engine.removeRelease(release_id, 0)
      await following
      expect(seen.toSorted()).toEqual(['ready', 'ready', 'warned', 'warned'])
    })

    test('stats are there for a running instance only', async () => {
      const [instance] = await engine.ensureRelease(release(), calm)
      expect(await engine.stats(instance!.id)).toMatchObject({
        cpu_cores: expect.any(Number),
        memory_bytes: expect.any(Number),
      })
      await subject.crash(instance!.id)
      await poll(async () => (await engine.stats(instance!.id)) === undefined)
    })

    test('events tell of a start, a death with its exit code and a removal', async () => {
      const stop = new AbortController()
      const seen: EngineEvent[] = []
      const watching = (async () => {
        for await (const event of engine.events(stop.signal))
          if (event.release_id === release_id) seen.push(event)
      })()
      const [instance] = await engine.ensureRelease(release(), calm)
      await subject.crash(instance!.id)
      await poll(async () => seen.some(({ kind }) => kind === 'die'))
      await engine.removeRelease(release_id, 0)
      await poll(async () => seen.some(({ kind }) => kind === 'destroy'))
      stop.abort()
      await watching
      expect(seen.map(({ kind }) => kind).filter((kind) => kind !== 'stop')).toEqual([
        'start',
        'die',
        'destroy',
      ])
      expect(seen.find(({ kind }) => kind === 'die')).toMatchObject({
        instance_id: instance!.id,
        owner,
        exit_code: 3,
      })
    })

    test('everything with a label goes at once', async () => {
      const other = `test-${newId('prj')}`
      const project_id = newId('prj')
      await engine.ensureNetwork(other, { project: project_id })
      await engine.ensureRelease(release({ project_id, network: other }), calm)
      await engine.removeLabelled({ project: project_id })
      expect(await engine.instances({ project_id })).toEqual([])
      await engine.ensureNetwork(other, { project: project_id })
      await engine.removeNetwork(other)
    })
  })
}
