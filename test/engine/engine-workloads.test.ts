import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { Engine } from '#server/platform/engine/engine'
import type { Mount, Workload } from '#server/platform/engine/workload'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testDocker, testEngine } from '#test/support/engine-images'
import { eventually } from '#test/support/portreeve'
import { testWorkload } from '#test/support/workload'

const docker = testDocker()
const project_id = newId('prj')
const owner = { kind: 'app' as const, id: newId('app') }
const network = `test-${project_id}`
const calm = new AbortController().signal
const MIB = 1024 ** 2
let engine: Engine
let unprivileged: string
let linking: string
let declaring: string
let release_id: string
let volume_id: string

const workload = (more: Partial<Workload> = {}): Workload =>
  testWorkload({
    owner,
    project_id,
    release_id,
    image: BUSYBOX_IMAGE,
    shell_command: 'exec sleep 600',
    network,
    ...more,
  })
const volume = (path = '/data'): Mount => ({ kind: 'volume', volume_id, path, read_only: false })
const start = async (more: Partial<Workload> = {}) => (await engine.ensureRelease(workload(more), calm))[0]!
/** Runs one line of shell in an instance and answers what it printed. */
async function shell(instance_id: string, line: string): Promise<string> {
  const command = await engine.exec(instance_id, { command: ['sh', '-c', line] }, calm)
  command.stdin.end()
  const [output, result] = await Promise.all([text(command.stdout), command.done])
  return `${output}${result.stderr}`.trim()
}

async function imageOf(lines: string, name: string): Promise<string> {
  const context = mkdtempSync(join(tmpdir(), 'portreeve-workloads-'))
  const image = await engine.buildImage(
    {
      context,
      dockerfile: `FROM ${BUSYBOX_IMAGE}\n${lines}`,
      tag: `portreeve-test/${name}:${project_id}`,
      labels: { project: project_id },
      build_args: {},
      secrets: {},
      no_cache: false,
      cache_scope: 'prj_test',
      limits: { cpus: 1, memory_bytes: 256 * MIB, timeout_ms: 60_000 },
      onLog: () => {},
    },
    calm,
  )
  rmSync(context, { recursive: true })
  return image.id
}

beforeAll(async () => {
  await ensureBusyboxImage()
  engine = testEngine()
  await engine.ensureNetwork(network, { project: project_id })
  unprivileged = await imageOf('USER nobody', 'nobody')
  declaring = await imageOf('RUN ln -s /etc /link\nVOLUME /c/d/e', 'declaring')
  linking = await imageOf('RUN ln -s /dev /data\nVOLUME /data', 'linking')
})
beforeEach(() => {
  release_id = newId('rel')
  volume_id = newId('vol')
})
afterEach(async () => {
  await engine.removeRelease(release_id, 0)
  await engine.removeVolume(volume_id)
})
afterAll(async () => {
  await engine.removeLabelled({ project: project_id })
  await engine.removeImage(unprivileged)
  await engine.removeNetwork(network)
  await engine.close()
})

describe('a volume', () => {
  test('keeps what an instance wrote when the next release takes it over', async () => {
    await engine.ensureVolume(volume_id, { project: project_id })
    const first = await start({ mounts: [volume()] })
    await shell(first.id, 'echo kept > /data/note')
    await engine.removeRelease(release_id, 0)
    release_id = newId('rel')
    const second = await start({ mounts: [volume()] })
    expect(await shell(second.id, 'cat /data/note')).toBe('kept')
  })

  test('belongs to the user of an image that is not root, also where the image has no such folder', async () => {
    await engine.ensureVolume(volume_id, { project: project_id })
    const instance = await start({ image: unprivileged, mounts: [volume('/var/lib/store')] })
    expect(
      await shell(instance.id, 'id -un; echo mine > /var/lib/store/note && cat /var/lib/store/note'),
    ).toBe('nobody\nmine')
    expect(await shell(instance.id, 'stat -c %u:%g /var/lib/store')).toBe('65534:65534')
  })

  test('that the engine made by itself, without our mark, is not taken for the data of an app', async () => {
    await docker.createVolume({ Name: volume_id })
    try {
      await expect(engine.ensureRelease(workload({ mounts: [volume()] }), calm)).rejects.toMatchObject({
        code: 'volume_missing',
      })
      await expect(engine.ensureVolume(volume_id, {})).rejects.toMatchObject({ code: 'conflict' })
    } finally {
      await docker.getVolume(volume_id).remove()
    }
  })

  test('holds what a server writes at its end when it is made anew with other settings', async () => {
    await engine.ensureVolume(volume_id, { project: project_id })
    const shell_command = `trap 'echo kept > /data/note; exit 0' TERM; touch /data/up; while :; do sleep 0.1; done`
    const settings = { mounts: [volume()], stop_grace_s: 10 }
    const before = await start({ ...settings, shell_command })
    await eventually('The server being up', async () =>
      (await shell(before.id, 'ls /data/up')) === '/data/up' ? true : undefined,
    )
    const after = await start({ ...settings, environment: { OTHER: 'yes' } })
    expect(after.id).not.toBe(before.id)
    expect(await shell(after.id, 'cat /data/note')).toBe('kept')
  })

  test('that may only be read cannot be written', async () => {
    await engine.ensureVolume(volume_id, { project: project_id })
    const instance = await start({ mounts: [{ ...volume(), read_only: true } as Mount] })
    expect(await shell(instance.id, 'echo x > /data/x')).toMatch(/read-only/i)
  })
})

test('no volume takes the place of devices, neither one of the image nor one that is mounted', async () => {
  const refusal = { message: 'A volume at /data would take the place of /dev, to which a link leads there.' }
  await expect(start({ image: linking })).rejects.toMatchObject(refusal)
  await engine.ensureVolume(volume_id, { project: project_id })
  await expect(start({ image: linking, mounts: [volume()] })).rejects.toMatchObject(refusal)
})

test('a program cannot lead a volume elsewhere before it is started again', async () => {
  await engine.ensureVolume(volume_id, { project: project_id })
  const config: Mount = { kind: 'file', path: '/a/app.conf', content: 'kept\n', mode: 0o644 }
  const mounts = [volume('/a/b/dev'), config]
  const instance = await start({ image: declaring, mounts })
  for (const folder of ['/a', '/a/b', '/c', '/c/d'])
    expect(await shell(instance.id, `mv ${folder} /moved`)).toMatch(/busy/i)
  expect(await shell(instance.id, 'cat /a/app.conf; stat -c %U:%a /a')).toBe('kept\nroot:755')
  const again = await start({ image: declaring, mounts })
  expect(again.id).toBe(instance.id)
})

test('a volume at a link of the image is mounted where that leads', async () => {
  await engine.ensureVolume(volume_id, { project: project_id })
  const instance = await start({ image: declaring, mounts: [volume('/link/dev')] })
  expect(await shell(instance.id, 'touch /link/dev/x; grep -o " /etc/dev " /proc/mounts')).toBe('/etc/dev')
})

test('inline files are there with their mode and the user of the image, below folders that it lacks', async () => {
  const file = (path: string, content: string, mode = 0o640): Mount => ({ kind: 'file', path, content, mode })
  const mounts = [file('/opt/shop/etc/app.conf', 'grüße\n'), file('/etc/motd', 'hello', 0o444)]
  const before = await start({ image: unprivileged, mounts })
  expect(await shell(before.id, 'cat /opt/shop/etc/app.conf; stat -c "%a %u" /opt/shop/etc/app.conf')).toBe(
    'grüße\n640 65534',
  )
  expect(await shell(before.id, 'cat /etc/motd; stat -c " %a" /etc/motd /etc /opt/shop')).toBe(
    'hello 444\n 755\n 755',
  )
  const same = await start({ image: unprivileged, mounts })
  const other = await start({ image: unprivileged, mounts: [file('/etc/motd', 'bye', 0o444)] })
  expect([same.id === before.id, other.id === before.id]).toEqual([true, false])
  expect(await shell(other.id, 'cat /etc/motd')).toBe('bye')
})

test('an inline file over a folder of the image is refused in a sentence that names its path', async () => {
  const mounts: Mount[] = ['/etc/motd', '/bin'].map((path) => ({
    kind: 'file',
    path,
    content: 'x',
    mode: 0o644,
  }))
  const folder = newId('rel')
  const onto = (release_id: string, files: Mount[]) =>
    engine.ensureRelease(workload({ release_id, mounts: files }), calm)
  await expect(onto(folder, mounts)).rejects.toMatchObject({
    code: 'file_refused',
    message: 'The file /bin cannot be written: the image has a folder there.',
  })
  await engine.removeRelease(folder, 0)
  const below = newId('rel')
  const inside: Mount[] = [{ kind: 'file', path: '/etc/passwd/extra', content: 'x', mode: 0o644 }]
  await expect(onto(below, inside)).rejects.toMatchObject({
    code: 'file_refused',
    message: 'The file /etc/passwd/extra cannot be written: the image has a file at /etc/passwd.',
  })
  await engine.removeRelease(below, 0)
})

test('a published port answers on the server, and one that is taken is named', async () => {
  const ports = [{ container_port: 8080, host_port: 20_443, protocol: 'tcp' as const }]
  const shell_command = 'echo published > /www/index.html; exec httpd -f -p 8080 -h /www'
  await start({ ports, shell_command })
  await expect
    .poll(() => fetch('http://127.0.0.1:20443/').then((answer) => answer.text(), String))
    .toBe('published\n')
  const other = newId('rel')
  await expect(
    engine.ensureRelease(workload({ release_id: other, ports, shell_command }), calm),
  ).rejects.toMatchObject({ code: 'port_taken', message: expect.stringContaining('20443') })
  await engine.removeRelease(other, 0)
})

describe('the streams of a command', () => {
  /** Large enough to tell a stream from a buffer: what is not yet collected as garbage stays below the limit. */
  const SIZE = Number(process.env.PORTREEVE_STREAM_MIB ?? 192)
  const LIMIT_MIB = 128
  const grown = async (work: () => Promise<unknown>): Promise<number> => {
    globalThis.gc?.()
    const before = process.memoryUsage().rss
    let peak = before
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20)
    await work().finally(() => clearInterval(timer))
    return (peak - before) / MIB
  }

  test('carry any amount out in constant memory, at the pace of a slow reader', async () => {
    const instance = await start()
    const dump = ['dd', 'if=/dev/zero', 'bs=1M', `count=${SIZE}`]
    const command = await engine.exec(instance.id, { command: dump }, calm)
    command.stdin.end()
    let read = 0
    const growth = await grown(async () => {
      for await (const chunk of command.stdout) {
        read += (chunk as Buffer).length
        await new Promise(setImmediate)
      }
    })
    expect(await command.done).toMatchObject({ exit_code: 0, stderr: expect.stringContaining('records out') })
    expect(read).toBe(SIZE * MIB)
    expect(growth).toBeLessThan(LIMIT_MIB)
  })

  test('carry any amount in, and tell a command that stops reading by its exit code', async () => {
    const instance = await start()
    const chunk = Buffer.alloc(MIB, 'x')
    const source = () =>
      Readable.from(
        (function* () {
          for (let sent = 0; sent < SIZE; sent++) yield chunk
        })(),
      )
    const count = await engine.exec(instance.id, { command: ['wc', '-c'] }, calm)
    const output = text(count.stdout)
    const growth = await grown(() => pipeline(source(), count.stdin))
    expect([(await output).trim(), (await count.done).exit_code]).toEqual([String(SIZE * MIB), 0])
    expect(growth).toBeLessThan(LIMIT_MIB)
    const broken = await engine.exec(
      instance.id,
      { command: ['sh', '-c', 'head -c 10 >/dev/null; exit 4'] },
      calm,
    )
    await pipeline(source(), broken.stdin).catch(() => undefined)
    expect(await broken.done).toMatchObject({ exit_code: 4 })
  })

  test('that are cut take the command with them', async () => {
    const instance = await start()
    const stop = new AbortController()
    const command = await engine.exec(instance.id, { command: ['sleep', '12345'] }, stop.signal)
    stop.abort()
    await expect(command.done).rejects.toMatchObject({ code: 'aborted' })
    await expect.poll(() => shell(instance.id, 'ps -o args | grep -c "^sleep 12345"')).toBe('0')
  })

  test('that say without end what went wrong are ended, too', async () => {
    const instance = await start()
    const command = await engine.exec(instance.id, { command: ['sh', '-c', 'yes ENDLESS >&2'] }, calm)
    await expect(command.done).rejects.toThrow('said without end')
    await expect.poll(() => shell(instance.id, 'ps -o args | grep -c "^yes ENDLESS"')).toBe('0')
  })
})
