import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { Engine } from '#server/platform/engine/engine'
import { createEgressFilter } from '#server/platform/host-rules/egress'
import { createEngineMemory } from '#server/platform/host-rules/engine-memory'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testEngine } from '#test/support/engine-images'
import { canStartEngine, startOwnEngine } from '#test/support/own-engine'
import { poll } from '#test/support/poll'
import { freePort } from '#test/support/portreeve'
import { testWorkload } from '#test/support/workload'

describe.skipIf(!canStartEngine)('an engine of our own, whose groups have another name', () => {
  const calm = new AbortController().signal
  const notes: string[] = []
  let own: Awaited<ReturnType<typeof startOwnEngine>>
  let engine: Engine

  beforeAll(async () => {
    own = await startOwnEngine('--cgroup-parent', `/pt-${process.pid}`)
    await ensureBusyboxImage(own.docker)
    engine = testEngine({ docker_host: own.docker_host, log: (note) => notes.push(note) })
  })
  afterAll(async () => {
    await engine.close()
    await own.close()
  })

  test('builds with the classic builder when BuildKit is seen to run uncapped, and the build still succeeds within its limits', async () => {
    const context = mkdtempSync(join(tmpdir(), 'portreeve-uncapped-'))
    const printed: string[] = []
    const build = (step: string) =>
      engine.buildImage(
        {
          context,
          dockerfile: `FROM ${BUSYBOX_IMAGE}\nRUN ${step}`,
          tag: 'portreeve-test/uncapped:1',
          labels: {},
          build_args: {},
          secrets: {},
          no_cache: true,
          cache_scope: 'prj_test',
          limits: { cpus: 1, memory_bytes: 64 * 1024 ** 2, timeout_ms: 60_000 },
          onLog: ({ text }) => printed.push(text),
        },
        calm,
      )
    // A step counts as uncapped once it was not seen in the group of capped ones for ten seconds.
    await build('sleep 14; echo done')
    expect([...notes, ...printed].join('\n')).toContain('BuildKit is not used for this build')
    expect(printed).toContain('done')
    await expect(build('tail /dev/zero')).rejects.toMatchObject({ code: 'out_of_memory' })
    rmSync(context, { recursive: true })
  })

  test('starts supervised instances again at their addresses after a restart, ends event streams, and answers as before', async () => {
    const ids = { project_id: newId('prj'), release_id: newId('rel') }
    const network = `test-${ids.project_id}`
    await engine.ensureNetwork(network, { project: ids.project_id })
    const before = await engine.ensureRelease(
      testWorkload({
        project_id: ids.project_id,
        release_id: ids.release_id,
        image: BUSYBOX_IMAGE,
        shell_command: 'exec sleep 600',
        network,
        replicas: 3,
      }),
      calm,
    )
    await engine.superviseRelease(ids.release_id, true)
    const watching = (async () => {
      for await (const event of engine.events(calm)) void event
    })()
    const ended = expect(watching).rejects.toMatchObject({ code: 'unavailable' })
    await own.restart()
    await ended
    await poll(
      async () =>
        (await engine.instances({ release_id: ids.release_id })).every(({ state }) => state === 'running'),
      60_000,
    )
    const after = await engine.instances({ release_id: ids.release_id })
    expect(after.map(({ id, address }) => ({ id, address }))).toEqual(
      before.map(({ id, address }) => ({ id, address })),
    )
  })
  test('reads no more of what a registry sends without end, also once nobody waits for it, and fetches again after that', async () => {
    const port = await freePort()
    const egress = createEgressFilter({
      docker_host: own.docker_host,
      allowed_private_hosts: [`127.0.0.1:${port}`],
      edge_ports: [],
      log: () => {},
    })
    let is_cut = false
    const memory = createEngineMemory({
      docker_host: own.docker_host,
      egress: {
        async cutOff(desired) {
          await egress.cutOff(desired)
          is_cut = desired
        },
      },
      log: () => {},
      // Of a small machine, so that the test takes little of this one.
      total_bytes: 1024 ** 3,
    })
    const guarded = testEngine({ docker_host: own.docker_host, watchMemory: memory.watch })
    const registry = spawn('nsenter', [
      `--net=/run/netns/${own.namespace}`,
      process.execPath,
      join(import.meta.dirname, '../support/endless-registry.ts'),
      String(port),
    ])
    let said = ''
    registry.stdout.on('data', (text: Buffer) => {
      said += text.toString()
    })
    const until = (condition: () => boolean) =>
      poll(async () => {
        await memory.look()
        return condition()
      })
    const pull = (signal: AbortSignal) =>
      guarded.pullImage(`127.0.0.1:${port}/x:1`, { onLog: () => {} }, signal).then(
        () => 'pulled',
        (error: { code: string }) => error.code,
      )
    try {
      await until(() => said.includes('ready'))
      expect(await egress.ensure()).toEqual({ active: true })
      const pulling = pull(calm)
      await until(() => said === 'ready\nasked\nclosed\n')
      expect(await pulling).toBe('image_refused')
      await until(() => !is_cut)
      const leaving = new AbortController()
      const left = pull(leaving.signal)
      await until(() => said.endsWith('asked\n'))
      leaving.abort()
      expect(await left).toBe('aborted')
      await until(() => said.endsWith('closed\n'))
    } finally {
      registry.kill()
      await once(registry, 'exit')
      await egress.release()
      await guarded.close()
    }
  })
})
