import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { BuildLogLine, BuildSpec, Engine } from '#server/platform/engine/engine'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testDocker, testEngine } from '#test/support/engine-images'
import { poll } from '#test/support/poll'

const docker = testDocker()
const project = newId('prj')
const calm = new AbortController().signal
const MIB = 1024 ** 2

/** Processes of this machine whose command line holds a text. */
const processesWith = (text: string) =>
  execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(text)).length

describe.each(['auto', 'classic'] as const)('builds with the builder %s', (builder) => {
  let engine: Engine
  let context: string
  let log: BuildLogLine[]

  const spec = (lines: string[], more: Partial<BuildSpec> = {}): BuildSpec => ({
    context,
    dockerfile: [`FROM ${BUSYBOX_IMAGE}`, ...lines].join('\n'),
    tag: `portreeve-test/build-${builder}:1`,
    labels: { project },
    build_args: {},
    secrets: {},
    no_cache: true,
    cache_scope: 'prj_test',
    limits: { cpus: 1, memory_bytes: 64 * MIB, timeout_ms: 60_000 },
    onLog: (line) => log.push(line),
    ...more,
  })
  const build = (lines: string[], more: Partial<BuildSpec> = {}, signal = calm) =>
    engine.buildImage(spec(lines, more), signal)
  const printed = (stream: BuildLogLine['stream']) =>
    log.filter((line) => line.stream === stream).map(({ text }) => text)

  beforeAll(async () => {
    await ensureBusyboxImage()
    engine = testEngine({ builder })
    context = mkdtempSync(join(tmpdir(), 'portreeve-build-'))
  })
  beforeEach(() => {
    log = []
  })
  afterAll(async () => {
    for (const image of await engine.listImages({ project })) await engine.removeImage(image.id)
    await engine.close()
    rmSync(context, { recursive: true })
  })

  test('refuse an image that says more of itself than every list of containers can repeat', async () => {
    const tag = `portreeve-test/build-${builder}:talkative`
    const labels = Array.from({ length: 10 }, (_, at) => `LABEL l${at}=$A`)
    await expect(build([`ARG A=${'x'.repeat(8192)}`, ...labels], { tag })).rejects.toMatchObject({
      code: 'image_refused',
      message: 'The image has more than 64 KiB of labels, which is more than may be run here.',
    })
    expect(await engine.findImage(tag)).toBeUndefined()
  })

  test('show what commands print as text, character by character, on the stream it came from', async () => {
    await build([
      'RUN printf "grün \\344\\275\\240"; usleep 200000; printf "\\345\\245\\275\\n"; echo oops >&2; printf "1%%\\r50%%\\r100%%\\n"; printf "\\033[32mok\\033[0m \\033[2Kgone\\n"',
    ])
    expect(printed('stdout')).toEqual(['grün 你好', '100%', '\u001b[32mok\u001b[0m gone'])
    expect(printed('stderr')).toEqual(['oops'])
    expect(printed('system').join('\n')).toContain('RUN printf')
  })

  test('cut a line without an end instead of keeping it all', async () => {
    await build(['RUN yes 0123456789 | head -n 20000 | tr -d "\\n"; echo; echo after'], {
      limits: { cpus: 1, memory_bytes: 256 * MIB, timeout_ms: 60_000 },
    })
    const [long, after] = printed('stdout')
    expect(long).toMatch(/^0123456789.* … \[line truncated\]$/)
    expect(long!.length).toBeLessThan(8300)
    expect(after).toBe('after')
  })

  test('end when they are cancelled: no process and no container is left', async () => {
    const mark = `sleep ${41_000 + Math.floor(Math.random() * 9_000)}`
    const stop = new AbortController()
    const building = build([`RUN ${mark}`], {}, stop.signal)
    building.catch(() => {})
    await poll(() => processesWith(mark) > 0)
    stop.abort()
    await expect(building).rejects.toMatchObject({
      code: 'aborted',
      message: 'The build was cancelled.',
    })
    await poll(() => processesWith(mark) === 0)
    await poll(async () =>
      (await docker.listContainers({ all: true })).every(({ Command }) => !Command.includes(mark)),
    )
  })

  test.skipIf(builder === 'classic')(
    'print into the log and into no file of the kernel, whatever a step has put in the place of their devices',
    async () => {
      const file = '/proc/sys/kernel/printk_ratelimit_burst'
      const [mount, value] = ['--mount=type=cache,target=/root/.npm', readFileSync(file, 'utf8').trim()]
      await build(
        [
          `RUN ${mount} ln -sfn ${file} /root/.npm/null`,
          'RUN mv /root /old && mkdir /root && ln -s /dev /root/.npm',
          `RUN ${mount} echo ${value}`,
          `RUN --mount=type=bind,rw,target=/root/.npm,from=seed echo ${value}`,
        ].toSpliced(
          0,
          0,
          `RUN mkdir /s && ln -s ${file} /s/null`,
          'FROM scratch AS seed',
          'COPY --from=0 /s /',
          `FROM ${BUSYBOX_IMAGE}`,
        ),
      )
      expect(printed('stdout')).toEqual([value, value])
      expect(readFileSync(file, 'utf8').trim()).toBe(value)
    },
  )

  test('leave no container behind when a step fails', async () => {
    const mark = newId('run')
    await expect(build([`RUN echo ${mark}`, `RUN test -f /${mark}`])).rejects.toMatchObject({
      code: 'build_failed',
      message: `The command \`test -f /${mark}\` failed with exit code 1.`,
      log: [],
    })
    const containers = await docker.listContainers({ all: true })
    expect(containers.filter(({ Command }) => Command.includes(mark))).toEqual([])
  })

  test('tell what the command that failed printed last, and nothing of the steps before it', async () => {
    await expect(
      build([
        'RUN echo before',
        'RUN printf "\\033[31mreason\\033[0m\\n"; echo detail >&2; echo npm error code 3; exit 3',
      ]),
    ).rejects.toMatchObject({ code: 'build_failed', log: expect.arrayContaining(['reason', 'detail']) })
    // Through one pipe: the engine reads two of them in no order.
    await expect(build(['RUN echo before', 'RUN echo now >&2 && nosuch --help'])).rejects.toMatchObject({
      message:
        'The program `nosuch` is not installed: the command `echo now >&2 && nosuch --help` failed with exit code 127.',
      log: ['now', '/bin/sh: nosuch: not found'],
    })
    await expect(
      build(['RUN echo going on; sleep 30'], {
        limits: { cpus: 1, memory_bytes: 64 * MIB, timeout_ms: 3_000 },
      }),
    ).rejects.toMatchObject({ code: 'timeout', log: ['going on'] })
  })

  test('say so when a command is killed for memory, at the limit that was set', async () => {
    await expect(build(['RUN tail /dev/zero'])).rejects.toMatchObject({
      code: 'out_of_memory',
      message:
        'The command `tail /dev/zero` was killed with exit code 137, because the build needed more memory than its limit of 64 MiB.',
    })
    await build(['RUN dd if=/dev/zero of=/dev/null bs=90M count=1'], {
      limits: { cpus: 1, memory_bytes: 256 * MIB, timeout_ms: 60_000 },
    })
  })

  test('end at the time limit, with their process', async () => {
    const mark = `sleep ${51_000 + Math.floor(Math.random() * 9_000)}`
    await expect(
      build([`RUN ${mark}`], { limits: { cpus: 1, memory_bytes: 64 * MIB, timeout_ms: 2_000 } }),
    ).rejects.toMatchObject({
      code: 'timeout',
      message: 'The build took longer than its time limit of 2 seconds.',
    })
    await poll(() => processesWith(mark) === 0)
  })

  test('get the source as it is: modes, links, empty folders; never .git, nor what .dockerignore leaves out, nor our Dockerfile', async () => {
    const source = mkdtempSync(join(tmpdir(), 'portreeve-source-'))
    for (const folder of ['bin', 'empty', 'web/.git', '.git', 'logs/keep'])
      mkdirSync(join(source, folder), { recursive: true })
    for (const file of [
      'bin/run',
      'web/page.html',
      'web/.git/HEAD',
      '.git/config',
      'a.log',
      'logs/b.log',
      'logs/keep/c.log',
      'ünïcode name',
    ])
      writeFileSync(join(source, file), file)
    chmodSync(join(source, 'bin/run'), 0o755)
    symlinkSync('web/page.html', join(source, 'link'))
    symlinkSync('/etc/shadow', join(source, 'outside'))
    writeFileSync(join(source, '.dockerignore'), '# comment\n**/*.log\n!logs/keep/c.log\n.dockerignore\n')
    await build(
      [
        'COPY . /app',
        'RUN cd /app && find . | sort && stat -c "%a %u %n" bin/run && readlink link && readlink outside && cat "ünïcode name"',
      ],
      { context: source },
    )
    expect(printed('stdout')).toEqual([
      '.',
      './bin',
      './bin/run',
      './empty',
      './link',
      './logs',
      './logs/keep',
      './logs/keep/c.log',
      './outside',
      './web',
      './web/page.html',
      './ünïcode name',
      '755 0 bin/run',
      'web/page.html',
      '/etc/shadow',
      'ünïcode name',
    ])
    rmSync(source, { recursive: true })
  })

  test('reuse unchanged steps after a fresh checkout', async () => {
    const checkout = () => {
      const source = mkdtempSync(join(tmpdir(), 'portreeve-source-'))
      writeFileSync(join(source, 'a'), 'same')
      return source
    }
    const steps = ['COPY a /a', `RUN date +%N > /${newId('run')}`]
    const [first, second] = [checkout(), checkout()]
    const before = await build(steps, { context: first, no_cache: false })
    const after = await build(steps, { context: second, no_cache: false })
    expect(after.id).toBe(before.id)
    for (const source of [first, second]) rmSync(source, { recursive: true })
  })

  test('take arguments, a target and labels', async () => {
    const image = await build(
      ['AS one', 'ARG V', 'RUN echo "V is $V"', `FROM ${BUSYBOX_IMAGE}`, 'RUN echo never'],
      {
        dockerfile: `FROM ${BUSYBOX_IMAGE} AS one\nARG V\nRUN echo "V is $V"\nFROM ${BUSYBOX_IMAGE}\nRUN echo never`,
        target: 'one',
        build_args: { V: 'x y' },
      },
    )
    expect(printed('stdout')).toContain('V is x y')
    expect(printed('stdout')).not.toContain('never')
    const { Config } = await docker.getImage(image.id).inspect()
    expect(Config.Labels).toMatchObject({
      'portreeve.managed': 'true',
      'portreeve.project': project,
    })
  })

  test('explain a Dockerfile that cannot be read, a file that is not there and a folder that is not there', async () => {
    await expect(build(['FRUM x'])).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/^The Dockerfile is not valid: .*FRUM/i),
    })
    await expect(build(['COPY nope /x'])).rejects.toMatchObject({
      code: 'build_failed',
      message: 'The Dockerfile copies `nope`, which is not in the source or is left out by .dockerignore.',
    })
    await expect(build([], { context: '/nonexistent' })).rejects.toMatchObject({
      code: 'build_failed',
    })
    await expect(build(['RUN nosuchprogram'])).rejects.toMatchObject({
      code: 'build_failed',
      message:
        'The program `nosuchprogram` is not installed: the command `nosuchprogram` failed with exit code 127.',
    })
  })

  test('of two at the same time keep their logs and outcomes apart', async () => {
    const other: string[] = []
    const [failed, done] = await Promise.allSettled([
      build(['RUN for i in 1 2 3; do echo mine; usleep 50000; done; exit 4']),
      build(['RUN for i in 1 2 3; do echo other; usleep 50000; done'], {
        tag: `portreeve-test/build-${builder}:2`,
        onLog: ({ text }) => other.push(text),
      }),
    ])
    expect(failed).toMatchObject({ status: 'rejected', reason: { code: 'build_failed' } })
    expect(done).toMatchObject({ status: 'fulfilled' })
    expect(printed('stdout')).toEqual(['mine', 'mine', 'mine'])
    expect(other.filter((text) => text === 'other')).toHaveLength(3)
    expect(other).not.toContain('mine')
  })

  test.runIf(builder === 'auto')('mount secrets that end up in no layer, no history and no log', async () => {
    const secret = newId('key')
    const image = await build(
      ['RUN --mount=type=secret,id=token wc -c < /run/secrets/token', 'RUN test ! -e /run/secrets/token'],
      { secrets: { token: secret } },
    )
    expect(printed('stdout')).toContain(String(secret.length))
    expect(
      JSON.stringify([
        await docker.getImage(image.id).history(),
        await docker.getImage(image.id).inspect(),
        log,
      ]),
    ).not.toContain(secret)
    await expect(build(['RUN --mount=type=secret,id=other,required=true true'])).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('secret'),
    })
  })

  test.runIf(builder === 'auto')(
    'with BuildKit are held to a share of the processor and a number of processes',
    async () => {
      const marks = new AbortController()
      const building = build(['RUN echo begin; sleep 43210'], {}, marks.signal)
      building.catch(() => {})
      await poll(() => printed('stdout').includes('begin'))
      const group = '/sys/fs/cgroup'
      const quota = [
        `${group}/cpu/docker/buildkit/cpu.cfs_quota_us`,
        `${group}/docker/buildkit/cpu.max`,
      ].flatMap((path) => {
        try {
          return [Number.parseInt(readFileSync(path, 'utf8'), 10)]
        } catch {
          return []
        }
      })
      marks.abort()
      await building.catch(() => {})
      expect(quota).toEqual([100_000])
    },
  )

  test.runIf(builder === 'auto')(
    'with BuildKit explain a syntax line whose image cannot be fetched',
    async () => {
      await expect(
        build([], {
          dockerfile: `# syntax=registry.invalid/nosuch/dockerfile:1\nFROM ${BUSYBOX_IMAGE}\nRUN true`,
        }),
      ).rejects.toMatchObject({
        code: 'image_not_found',
        message: expect.stringContaining('# syntax=registry.invalid/nosuch/dockerfile:1'),
        hint: expect.stringContaining('Remove the `# syntax=` line'),
      })
    },
  )

  test.runIf(builder === 'classic')(
    'without BuildKit leave cache mounts out and refuse secret mounts',
    async () => {
      await build(['RUN --mount=type=cache,target=/cache,sharing=locked \\\n  echo built'])
      expect(printed('stdout')).toContain('built')
      await expect(
        build(['RUN --mount=type=secret,id=token true'], { secrets: { token: 'x' } }),
      ).rejects.toMatchObject({
        code: 'build_failed',
        message: expect.stringContaining('need BuildKit'),
      })
    },
  )
})
