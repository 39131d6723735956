import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { createConnection } from '#server/platform/engine/connection'
import { layerBytes } from '#server/platform/engine/containers/layer-size'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const MIB = 1024 ** 2

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
function folderOf(bytes: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-layer-'))
  closing.push(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'x'), Buffer.alloc(bytes, 1))
  return folder
}

// Only root may walk what the engine keeps.
it.runIf(process.getuid?.() === 0)(
  'what an image has volumes of its own for counts as written by its instance, and a volume of ours does not',
  async () => {
    const mount = (Name: string, Destination: string, bytes: number) => ({
      Type: 'volume',
      Name,
      Source: folderOf(bytes),
      Destination,
    })
    const Mounts = [
      mount('vol_x1', '/data', 9 * MIB),
      mount('f'.repeat(64), '/var/cache', 3 * MIB),
      { Type: 'tmpfs', Source: '', Destination: '/tmp' },
    ]
    const server = await createEngineStandIn((_, response) =>
      json(response, { Id: 'c1', SizeRw: 2 * MIB, Mounts }),
    )
    const connection = createConnection(server.docker_host)
    closing.push(() => connection.close(), server.close)
    const bytes = (await layerBytes(connection, 'c1'))!
    expect(bytes).toBeGreaterThanOrEqual(5 * MIB)
    expect(bytes).toBeLessThan(6 * MIB)
  },
)

it.runIf(process.getuid?.() === 0)(
  'files that the engine keeps for a container, and lets it write to, count as written by it',
  async () => {
    const [hosts, names, own_name] = [3 * MIB, 2 * MIB, MIB].map((bytes) => join(folderOf(bytes), 'x'))
    const paths = { HostsPath: hosts, ResolvConfPath: names, HostnamePath: own_name }
    const server = await createEngineStandIn((_, response) =>
      json(response, { Id: 'c1', SizeRw: MIB, Mounts: [], ...paths }),
    )
    const connection = createConnection(server.docker_host)
    closing.push(() => connection.close(), server.close)
    const bytes = (await layerBytes(connection, 'c1'))!
    expect(bytes).toBeGreaterThanOrEqual(7 * MIB)
    expect(bytes).toBeLessThan(8 * MIB)
  },
)
