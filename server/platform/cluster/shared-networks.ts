import { setTimeout as pause } from 'node:timers/promises'
import { own } from '#server/kernel/own'
import type { Connection } from '#server/platform/engine/connection'
import { joinNetwork } from '#server/platform/engine/containers/files'
import { EngineError, type Labels } from '#server/platform/engine/engine'
import type { LabelScope } from '#server/platform/engine/labels'
import { TUNNEL_MTU } from './tunnel-plan.ts'

/** A project's network over all servers of the cluster, beside its own one on each of them. */
export const sharedName = (network: string): string => `${network}-shared`

interface NetworkEntry {
  Id: string
  Name: string
  Labels: Record<string, string> | null
}
interface Endpoint {
  Aliases?: string[] | null
}
interface Listed {
  Id: string
  HostConfig?: { NetworkMode?: string }
  NetworkSettings?: { Networks?: Record<string, Endpoint> | null }
}

const DEADLINE_MS = 60_000
const IN_USE_ATTEMPTS = 20
const IN_USE_PAUSE_MS = 500
const saysInUse = (error: unknown): boolean => error instanceof EngineError && /is in use/.test(error.message)

/** Networks over all servers, kept by the engine of this one. */
export function createSharedNetworks(local: Connection, scope: LabelScope) {
  const known = new Set<string>()

  const list = async (): Promise<NetworkEntry[]> =>
    (
      await local.call<NetworkEntry[]>({
        path: '/networks',
        query: { filters: JSON.stringify({ driver: ['overlay'], label: scope.filter({}) }) },
      })
    ).filter(({ Labels: labels }) => scope.owns(labels))

  /** Containers here that are in the project's own network join the shared one, by the names that they have. */
  async function joinAll(network: string): Promise<void> {
    const shared = sharedName(network)
    const listed = await local.call<Listed[]>({
      path: '/containers/json',
      query: { all: true, filters: JSON.stringify({ label: scope.filter({}), network: [network] }) },
      keep: (entry) => ({
        Id: (entry as Listed).Id,
        NetworkSettings: (entry as Listed).NetworkSettings,
      }),
    })
    for (const { Id, NetworkSettings } of listed) {
      if (own(NetworkSettings?.Networks ?? {}, shared)) continue
      const info = await local.call<Listed | undefined>({
        path: `/containers/${encodeURIComponent(Id)}/json`,
        accept: [404],
      })
      if (!info) continue
      const names = own(info.NetworkSettings?.Networks ?? {}, network)?.Aliases ?? []
      // The engine adds the beginning of the id to those that were asked for.
      const aliases = names.filter((name) => !Id.startsWith(name))
      await joinNetwork(local, Id, { network: shared, aliases }).catch((error: unknown) => {
        if (!(error instanceof EngineError && error.code === 'not_found')) throw error
      })
    }
  }

  async function removeOne({ Id }: Pick<NetworkEntry, 'Id'>): Promise<void> {
    const path = `/networks/${encodeURIComponent(Id)}`
    const info = await local.call<{ Containers?: Record<string, unknown> | null } | undefined>({
      path,
      accept: [404],
    })
    for (const container of Object.keys(info?.Containers ?? {}))
      if (!container.startsWith('lb-'))
        await local.call({
          method: 'POST',
          path: `${path}/disconnect`,
          body: { Container: container, Force: true },
          accept: [404],
          deadline_ms: DEADLINE_MS,
        })
    for (let attempt = 1; ; attempt++) {
      try {
        await local.call({ method: 'DELETE', path, accept: [404], deadline_ms: DEADLINE_MS })
        return
      } catch (error) {
        // The cluster notes some time later that a container has left; of a member that is away it never does.
        if (!saysInUse(error)) throw error
        if (attempt >= IN_USE_ATTEMPTS) return
        await pause(IN_USE_PAUSE_MS)
      }
    }
  }

  return {
    /** Which there are, after a start of this process. */
    async load(): Promise<void> {
      known.clear()
      for (const { Name } of await list()) known.add(Name)
    },
    has: (network: string): boolean => known.has(sharedName(network)),
    /** @param encrypts whether the kernels of all servers encrypt such a network. */
    async ensure(network: string, labels: Labels, encrypts: () => Promise<boolean>): Promise<void> {
      const name = sharedName(network)
      if (!known.has(name)) {
        const encrypted = await encrypts()
        await local
          .call({
            method: 'POST',
            path: '/networks/create',
            body: {
              Name: name,
              CheckDuplicate: true,
              Driver: 'overlay',
              Attachable: true,
              Labels: scope.stored(labels),
              Options: {
                'com.docker.network.driver.mtu': String(TUNNEL_MTU),
                ...(encrypted ? { encrypted: '' } : {}),
              },
            },
            deadline_ms: DEADLINE_MS,
          })
          .catch((error: unknown) => {
            if (!(error instanceof EngineError && error.code === 'conflict')) throw error
          })
        known.add(name)
      }
      await joinAll(network)
    },
    /** One that a member which is away still uses stays until the cluster ends. */
    async remove(network: string): Promise<void> {
      const name = sharedName(network)
      if (!known.delete(name)) return
      for (const entry of await list()) if (entry.Name === name) await removeOne(entry)
    },
    async removeAll(): Promise<void> {
      for (const entry of await list()) await removeOne(entry)
      known.clear()
    },
  }
}
export type SharedNetworks = ReturnType<typeof createSharedNetworks>
