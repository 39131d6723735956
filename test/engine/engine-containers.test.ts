import { execFileSync } from 'node:child_process'
import { existsSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { Engine, LogLine, RunOnceSpec } from '#server/platform/engine/engine'
import { CAPABILITIES, type Workload } from '#server/platform/engine/workload'
import { unstartable } from '#server/platform/engine/containers/start-failure'
import {
  BUSYBOX_IMAGE,
  ensureBusyboxImage,
  testDocker,
  TEST_INSTALLATION,
  testEngine,
} from '#test/support/engine-images'
import { poll } from '#test/support/poll'
import { testWorkload } from '#test/support/workload'

const docker = testDocker()
const ids = { app_id: newId('app'), project_id: newId('prj') }
const network = `test-${ids.project_id}`
const calm = new AbortController().signal
let engine: Engine
let release_id: string

const release = (more: Partial<Workload> = {}): Workload =>
  testWorkload({
    owner: { kind: 'app', id: ids.app_id },
    project_id: ids.project_id,
    release_id,
    image: BUSYBOX_IMAGE,
    shell_command: 'exec sleep 600',
    network,
    limits: { cpus: 0.5, memory_bytes: 32 * 1024 ** 2, pids: 40 },
    stop_grace_s: 2,
    ...more,
  })
const run = async (shell_command: string, more: Partial<RunOnceSpec> = {}) => {
  const lines: LogLine[] = []
  const { replicas: _, ...spec } = release()
  const result = await engine.runOnce(
    {
      ...spec,
      shell_command,
      purpose: 'task',
      timeout_ms: 30_000,
      onLog: (line) => lines.push(line),
      ...more,
    },
    calm,
  )
  return { ...result, lines, texts: lines.map(({ text }) => text) }
}

beforeAll(async () => {
  await ensureBusyboxImage()
  engine = testEngine()
  await engine.ensureNetwork(network, { project: ids.project_id })
})
beforeEach(() => {
  release_id = newId('rel')
})
afterEach(() => engine.removeRelease(release_id, 0))
afterAll(async () => {
  await engine.removeLabelled({ project: ids.project_id })
  await engine.removeNetwork(network)
  await engine.close()
})

describe('a container', () => {
  test('tells how much it wrote beside its image and its volumes', async () => {
    const volume_id = newId('vol')
    await engine.ensureVolume(volume_id, { project: ids.project_id })
    const write = (path: string, mib: number) => `head -c ${mib * 1024 ** 2} /dev/urandom > ${path}`
    await engine.ensureRelease(
      release({
        shell_command: `${write('/tmp/own', 6)}; ${write('/data/kept', 9)}; echo written; exec sleep 600`,
        mounts: [{ kind: 'volume', volume_id, path: '/data', read_only: false }],
      }),
      calm,
    )
    const [instance] = await engine.instances({ owner: { kind: 'app', id: ids.app_id } })
    const bytes = async () => (await engine.layerBytes(instance!.id)) ?? 0
    await poll(async () => (await bytes()) >= 6 * 1024 ** 2)
    expect(await bytes()).toBeLessThan(8 * 1024 ** 2)
    await engine.removeRelease(release_id, 0)
    expect(await engine.layerBytes(instance!.id)).toBeUndefined()
    await engine.removeVolume(volume_id)
  })
  test('hides nothing of what it wrote: no files without a name, no blocks beyond their end, nothing in files of the engine', async () => {
    const [kept, beside] = [newId('vol'), newId('vol')]
    for (const id of [kept, beside]) await engine.ensureVolume(id, { project: ids.project_id })
    const hidden = (descriptor: number, path: string, mib: number) =>
      `exec ${descriptor}>${path}; rm ${path}; head -c ${mib * 1024 ** 2} /dev/urandom >&${descriptor}`
    await engine.ensureRelease(
      release({
        shell_command: `head -c ${5 * 1024 ** 2} /dev/urandom >> /etc/hosts; ${hidden(3, '/tmp/own', 6)}; ${hidden(4, '/data/kept', 9)}; exec sleep 600`,
        mounts: [
          { kind: 'volume', volume_id: beside, path: '/beside', read_only: false },
          { kind: 'volume', volume_id: kept, path: '/data', read_only: false },
        ],
      }),
      calm,
    )
    const [instance] = await engine.instances({ owner: { kind: 'app', id: ids.app_id } })
    const folder = (await docker.getVolume(beside).inspect()).Mountpoint
    writeFileSync(join(folder, 'x'), '')
    execFileSync('fallocate', ['-n', '-l', '5M', join(folder, 'x')])
    const used = async (id: string) => (await engine.volumeUsage()).get(id)?.used_bytes ?? 0
    await poll(async () => (await used(kept)) >= 9 * 1024 ** 2)
    expect(await used(beside)).toBeGreaterThanOrEqual(5 * 1024 ** 2)
    expect(await used(beside)).toBeLessThan(6 * 1024 ** 2)
    expect(await used(kept)).toBeLessThan(10 * 1024 ** 2)
    const layer = (await engine.layerBytes(instance!.id))!
    expect(layer).toBeGreaterThanOrEqual(11 * 1024 ** 2)
    expect(layer).toBeLessThan(13 * 1024 ** 2)
    await engine.removeRelease(release_id, 0)
    for (const id of [kept, beside]) await engine.removeVolume(id)
  })
  test('with very many files takes their share of the disk, however little is in them', async () => {
    const kept = newId('vol')
    await engine.ensureVolume(kept, { project: ids.project_id })
    const fill = (folder: string) =>
      `mkdir -p ${folder}; i=0; while [ $i -lt 14000 ]; do : > ${folder}/$i; i=$((i+1)); done`
    await engine.ensureRelease(
      release({
        shell_command: `${fill('/tmp/own')}; ${fill('/data/own')}; : > /data/done; exec sleep 600`,
        mounts: [{ kind: 'volume', volume_id: kept, path: '/data', read_only: false }],
      }),
      calm,
    )
    const [instance] = await engine.instances({ owner: { kind: 'app', id: ids.app_id } })
    const folder = (await docker.getVolume(kept).inspect()).Mountpoint
    // With half a processor, and the other lanes beside it, so many files take more than a minute.
    await poll(async () => existsSync(join(folder, 'done')), 180_000)
    const { bsize, blocks, files } = statfsSync(folder)
    const share = 4000 * ((bsize * blocks) / files)
    expect((await engine.volumeUsage()).get(kept)!.used_bytes).toBeGreaterThan(share)
    expect(await engine.layerBytes(instance!.id)).toBeGreaterThan(share)
    await engine.removeRelease(release_id, 0)
    await engine.removeVolume(kept)
  }, 240_000)
  test('holds only the listed capabilities, can gain none, and has an init process', async () => {
    const { texts } = await run(
      'grep -E "^(CapBnd|CapEff|NoNewPrivs|Seccomp):" /proc/self/status; cat /proc/1/comm',
    )
    const numbers: Record<string, number> = {
      CHOWN: 0,
      DAC_OVERRIDE: 1,
      FOWNER: 3,
      KILL: 5,
      SETGID: 6,
      SETUID: 7,
      NET_BIND_SERVICE: 10,
    }
    const mask = CAPABILITIES.reduce((sum, name) => sum + 2 ** numbers[name]!, 0)
      .toString(16)
      .padStart(16, '0')
    expect(texts).toEqual([
      `CapEff:\t${mask}`,
      `CapBnd:\t${mask}`,
      'NoNewPrivs:\t1',
      'Seccomp:\t2',
      'docker-init',
    ])
  })

  test('is held to its memory, processor and process limits, without swap', async () => {
    const [instance] = await engine.ensureRelease(release(), calm)
    const { HostConfig } = await docker.getContainer(instance!.id).inspect()
    expect(HostConfig).toMatchObject({
      Memory: 32 * 1024 ** 2,
      MemorySwap: 32 * 1024 ** 2,
      NanoCpus: 5e8,
      PidsLimit: 40,
      Privileged: false,
      Binds: null,
      PidMode: '',
      IpcMode: 'private',
    })
    const killed = await run('tail /dev/zero')
    expect(killed).toMatchObject({ exit_code: 137, oom_killed: true })
    const forked = await run('i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done; echo all', {
      timeout_ms: 8_000,
    })
    expect(forked.texts.join('\n')).toMatch(/fork|Resource temporarily unavailable/)
  })

  test('gets hostile values as values', async () => {
    const env = {
      QUOTE: `'"; touch /x $(touch /x) \`touch /x\``,
      LINES: 'a\nb',
      HostConfig: '{"Privileged":true}',
      __proto__x: 'y',
    }
    const { texts } = await run('env | grep -c touch; echo "$QUOTE"; test -e /x || echo absent', {
      environment: env,
    })
    expect(texts).toEqual(['1', env.QUOTE, 'absent'])
  })

  test('runs no check that its image brings along, whose work no limit of it holds', async () => {
    const image = `portreeve-test/checked:${process.pid}`
    const dockerfile = `FROM ${BUSYBOX_IMAGE}\nHEALTHCHECK --interval=1s CMD ["touch", "/checked"]\n`
    execFileSync('/usr/bin/docker', ['build', '-q', '-t', image, '-'], { input: dockerfile })
    const [instance] = await engine.ensureRelease(release({ image }), calm)
    const { Config, State } = await docker.getContainer(instance!.id).inspect()
    expect([Config.Healthcheck?.Test, State.Health?.Status ?? 'none']).toEqual([['NONE'], 'none'])
    await docker.getImage(image).remove({ force: true })
  })

  test('inherits no label of its image that is read of containers', async () => {
    const image = `portreeve-test/labelled:${process.pid}`
    const other = newId('db')
    const dockerfile = `FROM ${BUSYBOX_IMAGE}\nLABEL portreeve.database=${other} portreeve.process=worker portreeve.index=0\n`
    execFileSync('/usr/bin/docker', ['build', '-q', '-t', image, '-'], { input: dockerfile })
    const listed = () => engine.instances({ release_id })
    const [instance] = await engine.ensureRelease(release({ image }), calm)
    expect(await engine.instances({ owner: { kind: 'database', id: other } })).toEqual([])
    expect(await listed()).toMatchObject([{ id: instance!.id, process: 'web', index: 0 }])
    let beside: unknown
    await run('echo runs; sleep 600', {
      image,
      timeout_ms: 2_000,
      onLog: () => (beside = listed()),
    })
    expect(await beside).toMatchObject([{ id: instance!.id }])
    await engine.removeRelease(release_id, 0)
    await docker.getImage(image).remove({ force: true })
  })

  test('of one shell line ends with its signal and its own exit code', async () => {
    const [instance] = await engine.ensureRelease(
      release({ shell_command: 'true && exec sleep 600', stop_grace_s: 100 }),
      calm,
    )
    const begun = performance.now()
    await engine.removeRelease(instance!.release_id, 100)
    expect(performance.now() - begun).toBeLessThan(60_000)
    expect(await run('exit 42')).toMatchObject({ exit_code: 42 })
  })

  test('is refused in words when its command does not exist or may not run', async () => {
    const { shell_command: _, ...plain } = release()
    const [instance] = await engine.ensureRelease({ ...plain, command: ['nosuch', 'x'] }, calm)
    // The init process starts well and says a moment later that it cannot run the program.
    await poll(async () => (await engine.instances({ release_id }))[0]?.state === 'exited')
    const [ended] = await engine.instances({ release_id })
    const lines: string[] = []
    for await (const { text } of engine.logs(instance!.id, {})) lines.push(text)
    expect(unstartable(ended!.exit_code, lines)).toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('`nosuch`'),
    })
    expect(unstartable(1, lines)).toBeUndefined()
    expect(unstartable(ended!.exit_code, ['exec nosuch failed'])).toBeUndefined()
    await expect(
      engine.runOnce(
        { ...plain, command: ['/etc/passwd'], purpose: 'task', timeout_ms: 9_000, onLog: () => {} },
        calm,
      ),
    ).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('not executable'),
    })
  })

  test('is found by its aliases in its network only', async () => {
    const [shop] = await engine.ensureRelease(
      release({ aliases: ['shop'], shell_command: 'nc -ll -p 80 -e echo hello' }),
      calm,
    )
    const address = shop!.address!
    const requested = `nslookup shop 127.0.0.11 | grep -c ${address}; nc -w 2 ${address} 80 || echo unreachable`
    expect((await run(requested, { release_id: newId('rel') })).texts).toEqual(['1', 'hello'])
    const other = `test-${newId('prj')}`
    await engine.ensureNetwork(other, { project: ids.project_id })
    expect(
      (await run(requested, { release_id: newId('rel'), network: other })).texts.filter(
        (text) => !text.startsWith('nc:'),
      ),
    ).toEqual(['0', 'unreachable'])
    await engine.removeNetwork(other)
  })
})

describe('a release', () => {
  test('replaces a half-made container of another shape under its name, but never one of somebody else', async () => {
    const name = `${release_id}-0`
    const labels = {
      'portreeve.managed': 'true',
      'portreeve.installation': TEST_INSTALLATION,
      'portreeve.release': release_id,
      'portreeve.index': '0',
      'portreeve.spec': 'old',
    }
    const half = await docker.createContainer({ name, Image: BUSYBOX_IMAGE, Labels: labels })
    const [instance] = await engine.ensureRelease(release(), calm)
    expect(instance).toMatchObject({ state: 'running', index: 0 })
    expect(instance!.id).not.toBe(half.id)
    await engine.removeRelease(release_id, 0)
    const foreign = await docker.createContainer({ name, Image: BUSYBOX_IMAGE })
    await expect(engine.ensureRelease(release(), calm)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('did not make'),
    })
    await foreign.remove()
  })

  test('started twice at the same time has each instance once', async () => {
    const answers = await Promise.all([
      engine.ensureRelease(release({ replicas: 2 }), calm),
      engine.ensureRelease(release({ replicas: 2 }), calm),
    ])
    expect(answers[0].map(({ id }) => id)).toEqual(answers[1].map(({ id }) => id))
    expect(await engine.instances({ release_id })).toHaveLength(2)
  })

  test('that somebody duplicated with its labels stays one, and the copy goes with the next start', async () => {
    const [instance] = await engine.ensureRelease(release(), calm)
    const { Config } = await docker.getContainer(instance!.id).inspect()
    const copies = await Promise.all(
      ['0', 'none'].map((index) =>
        docker.createContainer({
          name: `copy-${index}-${release_id}`,
          Image: BUSYBOX_IMAGE,
          Cmd: ['sleep', '600'],
          Labels: { ...Config.Labels, 'portreeve.index': index },
        }),
      ),
    )
    for (const copy of copies) await copy.start()
    expect((await engine.instances({ release_id })).map(({ id }) => id)).toEqual([instance!.id])
    expect((await engine.ensureRelease(release(), calm)).map(({ id }) => id)).toEqual([instance!.id])
    for (const copy of copies) await expect(copy.inspect()).rejects.toMatchObject({ statusCode: 404 })
  })

  test('takes another address when somebody else holds the first', async () => {
    const [instance] = await engine.ensureRelease(release(), calm)
    const address = instance!.address!
    await engine.removeRelease(release_id, 0)
    const squatter = await docker.createContainer({
      name: `squatter-${release_id}`,
      Image: BUSYBOX_IMAGE,
      Cmd: ['sleep', '600'],
      HostConfig: { NetworkMode: network },
      NetworkingConfig: {
        EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: address } } },
      },
    } as never)
    await squatter.start()
    const [moved] = await engine.ensureRelease(release(), calm)
    expect(moved).toMatchObject({ state: 'running' })
    expect(moved!.address).not.toBe(address)
    await squatter.remove({ force: true })
  })

  test('has addresses from the upper half of its subnet, so that dynamic ones never meet them', async () => {
    const [info] = await docker.listNetworks({ filters: { name: [network] } })
    const config = info!.IPAM!.Config![0] as { Subnet: string; IPRange: string }
    expect(config.Subnet).toMatch(/^10\.20\d\.\d+\.0\/22$/)
    const [instance] = await engine.ensureRelease(release(), calm)
    const third = Number(instance!.address!.split('.')[2]) - Number(config.Subnet.split('.')[2])
    expect([2, 3]).toContain(third)
  })
})

describe('a one-off command', () => {
  test('prints its lines with their time and stream', async () => {
    const { lines } = await run(
      'echo one; usleep 50000; echo two >&2; usleep 50000; printf "three without end"',
    )
    expect(lines.map(({ stream, text }) => [stream, text])).toEqual([
      ['stdout', 'one'],
      ['stderr', 'two'],
      ['stdout', 'three without end'],
    ])
    expect(lines.map(({ at }) => Date.parse(at)).every((time) => Math.abs(time - Date.now()) < 60_000)).toBe(
      true,
    )
  })

  test('is gone within two seconds of being cancelled', async () => {
    const stop = new AbortController()
    const { replicas: _, ...spec } = release({ shell_command: 'trap "" TERM; sleep 600' })
    const running = engine.runOnce(
      { ...spec, purpose: 'task', timeout_ms: 60_000, onLog: () => {} },
      stop.signal,
    )
    running.catch(() => {})
    await poll(
      async () => (await docker.listContainers({ filters: { name: [`${release_id}-task`] } })).length === 1,
    )
    stop.abort()
    await poll(
      async () =>
        (await docker.listContainers({ all: true, filters: { name: [`${release_id}-task`] } })).length === 0,
      2_000,
    )
    await expect(running).rejects.toMatchObject({ code: 'aborted' })
  })

  test('takes the place of a leftover of an earlier run', async () => {
    await docker.createContainer({
      name: `${release_id}-task`,
      Image: BUSYBOX_IMAGE,
      Labels: {
        'portreeve.managed': 'true',
        'portreeve.installation': TEST_INSTALLATION,
        'portreeve.project': ids.project_id,
      },
    })
    expect(await run('exit 0')).toMatchObject({ exit_code: 0 })
  })
})

describe('logs', () => {
  test('are cut and clean: long lines, split characters, progress bars, terminal tricks', async () => {
    const { texts } = await run(
      'yes 0123456789 | head -n 20000 | tr -d "\\n"; echo; printf "gr\\303"; usleep 100000; printf "\\274n\\n"; printf "1\\r2\\r3\\n"; printf "\\033]0;title\\007plain\\n"',
    )
    expect(texts[0]).toMatch(/^0123456789.* … \[line truncated\]$/)
    expect(texts.slice(1)).toEqual(['grün', '3', 'plain'])
  })

  test('of a flooding container cost no memory while nobody reads on', async () => {
    const [instance] = await engine.ensureRelease(
      release({
        shell_command: 'yes "a line of some length, again and again and again"',
        limits: { cpus: 0.3, memory_bytes: 32 * 1024 ** 2, pids: 40 },
      }),
      calm,
    )
    const stop = new AbortController()
    const reader = engine.logs(instance!.id, { follow: true }, stop.signal)[Symbol.asyncIterator]()
    const first = (await reader.next()).value as LogLine
    const before = process.memoryUsage().rss
    await poll(async () => {
      for await (const line of engine.logs(instance!.id, { tail: 1 }))
        if (Date.parse(line.at) - Date.parse(first.at) > 2_000) return true
      return false
    })
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 ** 2)
    stop.abort()
    await reader.return?.()
  })

  test('of a container with a terminal are read, too', async () => {
    const container = await docker.createContainer({
      Image: BUSYBOX_IMAGE,
      Tty: true,
      Cmd: ['sh', '-c', 'echo on a terminal; echo oops >&2'],
      Labels: {
        'portreeve.managed': 'true',
        'portreeve.installation': TEST_INSTALLATION,
        'portreeve.project': ids.project_id,
      },
    })
    await container.start()
    await container.wait()
    const texts: string[] = []
    for await (const { text, at } of engine.logs(container.id, {})) {
      texts.push(text)
      expect(Date.now() - Date.parse(at)).toBeLessThan(60_000)
    }
    expect(texts).toEqual(['on a terminal', 'oops'])
    await container.remove()
  })

  test('can be read from and up to a time', async () => {
    const [instance] = await engine.ensureRelease(
      release({ shell_command: 'echo first; usleep 300000; echo second; exec sleep 600' }),
      calm,
    )
    const all: LogLine[] = []
    for await (const line of engine.logs(instance!.id, { follow: true })) if (all.push(line) === 2) break
    const since: string[] = []
    for await (const { text } of engine.logs(instance!.id, { since: all[1]!.at })) since.push(text)
    expect(since).toEqual(['second'])
    const until: string[] = []
    for await (const { text } of engine.logs(instance!.id, { until: all[0]!.at })) until.push(text)
    expect(until).toEqual(['first'])
  })

  test('of an instance that never was are refused', async () => {
    await expect(engine.logs('f'.repeat(64), {})[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'not_found',
    })
  })
})

test('a command that floods its output is read at a pace that nobody feels, and its last lines come whole', async () => {
  const { exit_code, texts } = await run('seq 1 600000; echo the end', { timeout_ms: 60_000 })
  expect(exit_code).toBe(0)
  expect(texts.slice(0, 1_000)).toEqual(Array.from({ length: 1_000 }, (_, at) => `${at + 1}`))
  expect(texts.slice(-3)).toEqual(['599999', '600000', 'the end'])
  expect(texts.filter((text) => text.startsWith('More is printed'))).toHaveLength(1)
  expect(texts.length).toBeLessThan(200_000)
})
