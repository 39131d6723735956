import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import { createConnection } from '#server/platform/engine/connection'
import type { Engine } from '#server/platform/engine/engine'
import { createEdgeContainer } from '#server/platform/ingress/runtime/container'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testEngine } from '#test/support/engine-images'
import { canStartEngine, startOwnEngine } from '#test/support/own-engine'
import { testWorkload } from '#test/support/workload'

/** Whom the engine makes for the ranges of its containers, where it is told `default`. */
const MADE_USER = 'dockremap'
const knowsUser = () => readFileSync('/etc/passwd', 'utf8').includes(`${MADE_USER}:`)

describe.skipIf(!canStartEngine)('an engine whose containers have users of their own', () => {
  const calm = new AbortController().signal
  const had_user = canStartEngine && knowsUser()
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-users-'))
  const printed: string[] = []
  let own: Awaited<ReturnType<typeof startOwnEngine>>
  let engine: Engine

  beforeAll(async () => {
    own = await startOwnEngine('--userns-remap', 'default')
    await ensureBusyboxImage(own.docker)
    engine = testEngine({ docker_host: own.docker_host })
  })
  afterAll(async () => {
    await engine.close()
    await own.close()
    rmSync(folder, { recursive: true })
    if (!had_user) execFileSync('userdel', [MADE_USER])
  })

  const build = (dockerfile: string, files: Record<string, string | Buffer> = {}, secrets = {}) => {
    const context = mkdtempSync(join(folder, 'context-'))
    for (const [name, content] of Object.entries(files)) writeFileSync(join(context, name), content)
    printed.length = 0
    return engine.buildImage(
      {
        ...{ context, dockerfile, secrets },
        ...{ tag: 'portreeve-test/users:1', labels: {}, build_args: {}, no_cache: true },
        cache_scope: 'prj_test',
        limits: { cpus: 1, memory_bytes: 64 * 1024 ** 2, timeout_ms: 60_000 },
        onLog: ({ text: line }) => printed.push(line),
      },
      calm,
    )
  }
  /** An archive with one link in it. */
  const linked = (name: string, target: string): Buffer => {
    const at = mkdtempSync(join(folder, 'tree-'))
    execFileSync('ln', ['-s', target, join(at, name)])
    return execFileSync('tar', ['-C', at, '-cf', '-', '.'])
  }

  test('runs root of an app as nobody of the server, and its volume belongs to the user of the image', async () => {
    const ids = { project_id: newId('prj'), release_id: newId('rel') }
    const [network, volume_id] = [`test-${ids.project_id}`, newId('vol')]
    await engine.ensureNetwork(network, { project: ids.project_id })
    await engine.ensureVolume(volume_id, { project: ids.project_id })
    const image = await build(`FROM ${BUSYBOX_IMAGE}\nUSER 1000:1000`)
    const instances = await engine.ensureRelease(
      testWorkload({
        ...{ ...ids, network, image: image.id, shell_command: 'exec sleep 600' },
        mounts: [{ kind: 'volume', volume_id, path: '/data', read_only: false }],
      }),
      calm,
    )
    const inside = async (command: string[], user?: string) => {
      const spec = { command, ...(user ? { user } : {}) }
      const { stdout, done } = await engine.exec(instances[0]!.id, spec, calm)
      const said = await text(stdout)
      expect(await done).toMatchObject({ exit_code: 0 })
      return said.trim()
    }
    const map = await inside(['cat', '/proc/self/uid_map'], '0')
    expect(Number(map.split(/\s+/)[1])).toBeGreaterThan(65_535)
    expect(await inside(['sh', '-c', 'echo mine > /data/note; stat -c %u:%g /data /data/note'])).toBe(
      '1000:1000\n1000:1000',
    )
    await engine.removeRelease(ids.release_id, 0)
  })

  test('builds with caches and secrets', async () => {
    await build(
      [
        `FROM ${BUSYBOX_IMAGE}`,
        'RUN --mount=type=cache,target=/root/.cache echo kept > /root/.cache/note',
        'RUN --mount=type=cache,target=/root/.cache --mount=type=secret,id=TOKEN cat /root/.cache/note && wc -c < /run/secrets/TOKEN',
      ].join('\n'),
      {},
      { TOKEN: 'geheim' },
    )
    expect(printed).toEqual(expect.arrayContaining(['kept', '6']))
  })

  test('lets steps change what ADD has unpacked', async () => {
    const at = mkdtempSync(join(folder, 'tree-'))
    writeFileSync(join(at, 'note'), 'before')
    await build(
      `FROM ${BUSYBOX_IMAGE}\nADD tree.tar /data/\nRUN chown 1000:1000 /data/note && stat -c %u:%g /data/note`,
      { 'tree.tar': execFileSync('tar', ['-C', at, '-cf', '-', 'note']) },
    )
    expect(printed).toContain('1000:1000')
  })

  test('makes no device in the folder of the server that a link in the place of /dev names', async () => {
    const target = join(folder, 'target')
    mkdirSync(target, { mode: 0o755 })
    await build(
      [
        `FROM ${BUSYBOX_IMAGE} AS tree`,
        'COPY tree.tar /',
        'RUN mkdir /tree && tar -xf /tree.tar -C /tree && cp -a /bin /etc /tree/',
        'FROM scratch',
        'COPY --from=tree /tree/ /',
        'RUN --mount=type=cache,target=/.cache true',
      ].join('\n'),
      { 'tree.tar': linked('dev', target) },
    ).catch(() => {})
    expect(readdirSync(target)).toEqual([])
  })

  test('runs the edge, which has the network of the server', async () => {
    const directory = mkdtempSync(join(folder, 'edge-'))
    const connection = createConnection(own.docker_host)
    const image = 'portreeve-test/edge-of-users:1'
    const context = { haproxy: '#!/bin/sh\nexec sleep 600\n' }
    const { id } = await build(`FROM ${BUSYBOX_IMAGE}\nCOPY --chmod=755 haproxy /bin/haproxy`, context)
    await own.docker.getImage(id).tag({ repo: image.split(':')[0]!, tag: '1' })
    const edge = createEdgeContainer({ engine: connection, directory, image, owner_uid: 0 })
    await edge.start(async () => {})
    expect(await edge.state()).toMatchObject({ running: true })
    await edge.remove()
    connection.close()
  })
})
