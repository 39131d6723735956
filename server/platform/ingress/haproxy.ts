import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Log } from '#server/kernel/log'
import type { Connection } from '#server/platform/engine/connection'
import { createCertificateRuntime } from './certificates.ts'
import { createCertificateSync } from './runtime/certificate-sync.ts'
import { createChallengeSync } from './runtime/challenge-sync.ts'
import { checkClaims, checkRoute, sortRoutes } from './check.ts'
import { createEdgeContainer } from './runtime/container.ts'
import { EDGE_IMAGE } from './image.ts'
import type { Ingress, RefusedRoute, Route } from './ingress.ts'
import { createEdgeLauncher } from './runtime/launch.ts'
import { createMasterCli } from './runtime/master-cli.ts'
import { createQueue } from './runtime/queue.ts'
import type { EdgeSettings } from './edge-settings.ts'
import { LOG_SOCKET } from './render/log.ts'
import { createRequestFollower } from './requests/follower.ts'
import { createEdgeRuntime } from './runtime/runtime.ts'
import { openEdgeStore, type EdgeStore } from './store.ts'
import { MIN_FREE_BACKENDS, poolSizeFor } from './render/route-table.ts'
import { createTrafficCounter } from './requests/traffic.ts'
import { listenForWakes } from './wake-socket.ts'

export interface HaproxyIngressOptions {
  engine: Connection
  /**
   * The edge's folder, e.g. `<data>/ingress`. Installations with different folders never touch each other's
   * edge.
   */
  data_directory: string
  http_port: number
  https_port: number
  /** Addresses or networks of proxies whose forwarding headers are believed. */
  trusted_proxies: string[]
  log: Log
  /** Another image than EDGE_IMAGE. */
  image?: string
}

/**
 * More changes than this at once are loaded from the files into a new worker; fewer are made in the running
 * one.
 */
const MAX_RUNTIME_CHANGES = 500

/**
 * The edge on HAProxy. Files first, then the running process: whatever dies in between, a restart of either
 * side ends with what was asked for. Changes are made one after another; each compares with what really runs,
 * never with a memory of it.
 */
export function createHaproxyIngress(options: HaproxyIngressOptions): Ingress {
  const directory = resolve(options.data_directory)
  const owner_uid = process.getuid?.() ?? 0
  const settings: EdgeSettings = {
    http_port: options.http_port,
    https_port: options.https_port,
    ipv6: existsSync('/proc/net/if_inet6'),
    trusted_proxies: options.trusted_proxies,
    owner_uid,
  }
  const container = createEdgeContainer({
    engine: options.engine,
    directory,
    image: options.image ?? EDGE_IMAGE,
    owner_uid,
  })
  const cli = createMasterCli(join(directory, 'run/master.sock'))
  const runtime = createEdgeRuntime(cli)
  const traffic = createTrafficCounter(cli)
  const launcher = createEdgeLauncher({
    container,
    cli,
    ports: { PORTREEVE_HTTP_PORT: options.http_port, PORTREEVE_HTTPS_PORT: options.https_port },
  })
  const certificates = createCertificateSync(createCertificateRuntime(cli))
  const challenges = createChallengeSync(cli)
  const requests = createRequestFollower({
    socket_path: join(directory, LOG_SOCKET),
    cli,
    log: options.log,
  })
  const exclusively = createQueue()
  let opened: EdgeStore | undefined
  let refused: RefusedRoute[] = []
  let refused_certificates: string[] = []

  const open = async (): Promise<EdgeStore> =>
    (opened ??= await openEdgeStore({ directory, settings, check: container.check }))

  /** Loads what is on disk into a new worker; counters of the old one are read before they are gone. */
  async function reload(store: EdgeStore): Promise<void> {
    await traffic.collect(store.table.routes)
    const complaint = await cli.reload()
    if (complaint !== undefined) throw store.refusal(complaint)
    requests.refresh()
  }

  /**
   * Sets some backends, in the files and then in the running edge. When the edge refuses, both go back to
   * what was.
   */
  async function change(store: EdgeStore, changes: ReadonlyMap<number, Route | undefined>): Promise<void> {
    const { before, after } = store.targets(changes)
    try {
      await store.put(changes)
      await runtime.sync(after)
    } catch (error) {
      await store.put(before.backends)
      await runtime.sync(before).catch((cause: unknown) =>
        options.log.warn('The edge could not be put back to its last state; the next change does it.', {
          error: cause,
        }),
      )
      throw error
    }
  }

  /**
   * The same for many changes at once, or for more backends than run. The edge is asked first, so that the
   * files never hold what it cannot load.
   */
  async function changeByReload(
    store: EdgeStore,
    changes: ReadonlyMap<number, Route | undefined>,
    pool_size: number,
  ): Promise<void> {
    const [before, size_before] = [
      new Map([...changes.keys()].map((number) => [number, store.table.routes.get(number)])),
      store.table.pool_size,
    ]
    await store.rehearse(changes, pool_size)
    try {
      await store.put(changes, pool_size)
      await reload(store)
    } catch (error) {
      await store.put(before, size_before)
      throw error
    }
  }

  /** Makes room ahead of time, so that a new app does not wait for a reload. */
  function growAhead(store: EdgeStore): void {
    if (store.table.free() >= MIN_FREE_BACKENDS) return
    void exclusively(() => grow(store)).catch((error: unknown) =>
      options.log.warn('The edge could not make room for more apps; it tries again with the next one.', {
        error,
      }),
    )
  }
  async function grow(store: EdgeStore): Promise<void> {
    const before = store.table.pool_size
    const size = poolSizeFor(store.table.routes.size, before)
    if (size !== before) await changeByReload(store, new Map(), size)
  }

  return {
    ensure: (signal) =>
      exclusively(async () => {
        const store = await open()
        const started = await launcher.ensure(signal)
        if (!started && store.stale) await reload(store)
        store.stale = false
      }),

    apply: (desired) =>
      exclusively(async () => {
        const store = await open()
        const sorted = sortRoutes(desired.routes)
        const pool_size = poolSizeFor(sorted.accepted.length, store.table.pool_size)
        const changes = store.differences(sorted.accepted, pool_size)
        if (changes.size > MAX_RUNTIME_CHANGES || pool_size > store.table.pool_size)
          await changeByReload(store, changes, pool_size)
        else await change(store, changes)
        await runtime.sync(store.everything(await runtime.entries()))
        const complaints = desired.certificates ? await certificates.replace(store, desired.certificates) : []
        for (const { certificate_id, message } of complaints)
          options.log.error('The edge goes on without a certificate', { certificate_id, complaint: message })
        refused_certificates = complaints.map(({ certificate_id }) => certificate_id)
        refused = sorted.refused
        for (const { route_id, message } of refused) options.log.warn(message, { route_id })
      }),

    setRoute: (route) =>
      exclusively(async () => {
        checkRoute(route)
        const store = await open()
        checkClaims(route, store.table.ownerOf)
        if (store.table.numberOf(route.id) === undefined && store.table.free() === 0) await grow(store)
        const number = store.table.numberOf(route.id) ?? store.table.takeFree()
        if (number !== undefined) await change(store, new Map([[number, structuredClone(route)]]))
        growAhead(store)
      }),

    removeRoute: (route_id) =>
      exclusively(async () => {
        const store = await open()
        const number = store.table.numberOf(route_id)
        if (number !== undefined) await change(store, new Map([[number, undefined]]))
      }),

    setCertificate: (certificate) => exclusively(async () => certificates.set(await open(), certificate)),
    removeCertificate: (certificate_id) =>
      exclusively(async () => certificates.remove(await open(), certificate_id)),
    setChallenge: (challenge) => exclusively(async () => challenges.set(await open(), challenge)),
    removeChallenge: (challenge) => exclusively(async () => challenges.remove(await open(), challenge)),
    activeConnections: (address, port) => runtime.activeConnections(address, port),
    traffic: () => exclusively(async () => traffic.collect((await open()).table.routes)),
    followRequests: (following) => requests.follow(following),
    followWakes: (following) => listenForWakes({ directory, log: options.log, ...following }),
    status: async () => ({ ...(await launcher.status()), refused, refused_certificates }),
    close: () => exclusively(async () => undefined),
  }
}
