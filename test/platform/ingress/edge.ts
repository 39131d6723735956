import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '#server/kernel/log'
import { createConnection } from '#server/platform/engine/connection'
import { createEdgeContainer, type EdgeContainer } from '#server/platform/ingress/runtime/container'
import { createHaproxyIngress, type HaproxyIngressOptions } from '#server/platform/ingress/haproxy'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import type { Ingress } from '#server/platform/ingress/ingress'
import { TEST_DOCKER_HOST, testDocker } from '#test/support/engine-images'
import { freePorts } from '#test/support/portreeve'
import type { Address } from './client.ts'

export const docker = testDocker()
const engine = createConnection(TEST_DOCKER_HOST)

/** A real edge of its own: own folder, own container, own ports. */
export interface TestEdge {
  ingress: Ingress
  edge: Address
  https: Address
  container: EdgeContainer
  directory: string
  /** Another Portreeve process on the same folder, as after a restart. */
  reopen(options?: Partial<HaproxyIngressOptions>): Ingress
  close(): Promise<void>
}

export { freePorts } from '#test/support/portreeve'

/** Prepares an edge without starting it. */
export async function openTestEdge({
  folder = '',
  ...options
}: Partial<HaproxyIngressOptions> & { folder?: string } = {}): Promise<TestEdge> {
  const root = await mkdtemp(join(tmpdir(), 'portreeve-edge-'))
  const directory = join(root, folder, 'ingress')
  const [http_port = 0, https_port = 0] = await freePorts(2)
  const base: HaproxyIngressOptions = {
    engine,
    data_directory: directory,
    http_port,
    https_port,
    trusted_proxies: [],
    log: createLog('text', 'error'),
    ...options,
  }
  const container = createEdgeContainer({
    engine,
    directory,
    image: EDGE_IMAGE,
    owner_uid: process.getuid?.() ?? 0,
  })
  return {
    ingress: createHaproxyIngress(base),
    edge: { host: '127.0.0.1', port: base.http_port },
    https: { host: '127.0.0.1', port: base.https_port },
    container,
    directory,
    reopen: (changes) => createHaproxyIngress({ ...base, ...changes }),
    async close() {
      await container.remove()
      await rm(root, { recursive: true, force: true })
    },
  }
}
