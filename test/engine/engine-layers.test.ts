import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { Engine } from '#server/platform/engine/engine'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testEngine } from '#test/support/engine-images'
import { canStartEngine, startOwnEngine } from '#test/support/own-engine'
import { testWorkload } from '#test/support/workload'

const MKFS = '/usr/sbin/mkfs.btrfs'
const MIB = 1024 ** 2
/** Making one needs a program that few machines have; the requests are held by `layer-limit.test.ts`. */
const canCount =
  canStartEngine && existsSync(MKFS) && readFileSync('/proc/filesystems', 'utf8').includes('\tbtrfs')
const run = (program: string, ...args: string[]) => execFileSync(program, args, { stdio: 'pipe' })

describe.skipIf(!canCount)('an engine on a file system that counts', () => {
  const calm = new AbortController().signal
  const folder = mkdtempSync('/var/tmp/portreeve-layers-')
  const mounted = join(folder, 'mounted')
  let own: Awaited<ReturnType<typeof startOwnEngine>>
  let engine: Engine

  beforeAll(async () => {
    const disk = join(folder, 'disk')
    writeFileSync(disk, '')
    truncateSync(disk, 1024 * MIB)
    run(MKFS, '-q', disk)
    mkdirSync(mounted)
    run('mount', '-o', 'loop', disk, mounted)
    own = await startOwnEngine('--storage-driver', 'btrfs', '--data-root', join(mounted, 'data'))
    await ensureBusyboxImage(own.docker)
    engine = testEngine({ docker_host: own.docker_host, layer_bytes: 64 * MIB })
  })
  afterAll(async () => {
    await engine?.close()
    await own?.close()
    run('umount', mounted)
    rmSync(folder, { recursive: true, force: true })
  })

  test('ends what a container writes beside its volumes at its share', async () => {
    const network = `test-${newId('prj')}`
    await engine.ensureNetwork(network, { project: newId('prj') })
    const printed: string[] = []
    const { release_id, ...spec } = testWorkload({
      image: BUSYBOX_IMAGE,
      network,
      shell_command: 'dd if=/dev/zero of=/root/fill bs=1M count=200; echo "exit $?"; du -m /root/fill',
    })
    const outcome = await engine.runOnce(
      {
        ...spec,
        release_id,
        purpose: 'command',
        timeout_ms: 120_000,
        onLog: ({ text }) => printed.push(text),
      },
      calm,
    )
    const said = printed.join('\n')
    expect(outcome.exit_code, said).toBe(0)
    expect(said).toMatch(/No space left|quota exceeded/i)
    expect(said).toContain('exit 1')
    expect(Number(/(\d+)\s+\/root\/fill/.exec(said)![1])).toBeLessThanOrEqual(64)
  })
})
