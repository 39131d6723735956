import { posix } from 'node:path'
import { isWithin } from '#server/kernel/mount-path'
import type { Connection } from '../connection.ts'
import { EngineError } from '../engine.ts'
import type { LabelScope } from '../labels.ts'
import type { StartGate } from '../start-gate.ts'
import type { ContainerSpec } from '../workload.ts'
import { type ContainerBody, containerBody } from './body.ts'
import { type MountPoint, writtenVolumes } from './written-volumes.ts'

type Volume = MountPoint & { Name: string }
interface Created {
  info: { Id: string; Image: string; Mounts?: MountPoint[] | null }
  spec: ContainerSpec
}
interface Containers {
  create(name: string, body: ContainerBody, signal: AbortSignal): Promise<string>
  remove(id: string): Promise<void>
  scope: LabelScope
  alone: StartGate['alone']
}
const DEADLINE_MS = 60_000
/** Folders of an image that stay known, so that replicas and restarts look at nothing. */
const MOST_KNOWN = 1000
const GO_LINK = 2 ** 27

const volumesOf = (mounts: readonly MountPoint[] | null | undefined): Volume[] =>
  (mounts ?? []).filter((mount): mount is Volume => mount.Type === 'volume' && mount.Name !== undefined)

/** Which of these volumes lies within which, once links of the image are followed. */
function nested(
  volumes: readonly Volume[],
  place: ReadonlyMap<string, string>,
): [inner: Volume, outer: Volume][] {
  const at = ({ Destination }: Volume) => place.get(Destination) ?? Destination
  return volumes.flatMap((inner) =>
    volumes
      .filter((outer) => outer !== inner && isWithin(at(inner), at(outer)))
      .map((outer): [Volume, Volume] => [inner, outer]),
  )
}

/**
 * Guards what the engine does with the files of a container that does not run. It mounts the volumes for that, one
 * after the other: it looks up where each belongs and mounts it there a moment later, by its path on this machine.
 * Whoever can write to the outer one of two volumes meanwhile can put a link there, and has a volume of theirs
 * mounted over a folder of the machine itself.
 */
export function createPlaces(connection: Connection, containers: Containers) {
  const known = new Map<string, ReadonlyMap<string, string>>()

  /** What a path of a container leads to: itself, or where the link at it ends. */
  async function targetOf(id: string, path: string, signal: AbortSignal): Promise<string> {
    try {
      const answer = await connection.stream({
        method: 'HEAD',
        path: `/containers/${encodeURIComponent(id)}/archive`,
        query: { path },
        signal,
        deadline_ms: DEADLINE_MS,
      })
      answer.destroy()
      const text = Buffer.from(
        String(answer.headers['x-docker-container-path-stat'] ?? ''),
        'base64',
      ).toString()
      const { mode, linkTarget } = JSON.parse(text || '{}') as { mode?: number; linkTarget?: string }
      return Math.floor((mode ?? 0) / GO_LINK) % 2 === 1 ? posix.resolve('/', linkTarget ?? '') : path
    } catch (error) {
      if (error instanceof EngineError && error.code === 'not_found') return path
      throw error
    }
  }

  /** Where paths lead in the image alone: in a container of it that has no volume of others, and never runs. */
  async function placesIn(
    { info: { Id, Image }, spec }: Created,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const key = JSON.stringify([Image, ...paths])
    const before = known.get(key)
    if (before) return before
    const bare = { ...spec, mounts: [], aliases: [] }
    const name = `${Id.slice(0, 12)}-places`
    const id = await containers.create(name, containerBody(containers.scope, bare, { labels: {} }), signal)
    try {
      const places = new Map<string, string>()
      for (const path of paths) {
        let place = '/'
        for (const part of path.split('/').filter(Boolean))
          place = await targetOf(id, posix.join(place, part), signal)
        places.set(path, place)
      }
      if (known.size >= MOST_KNOWN) known.clear()
      known.set(key, places)
      return places
    } finally {
      await containers.remove(id)
    }
  }

  /** Throws while something that may run can write to a volume that another one of the container lies within. */
  async function requireUnwritten(
    id: string,
    pairs: readonly [inner: Volume, outer: Volume][],
    signal: AbortSignal,
  ): Promise<void> {
    const written = await writtenVolumes(connection, {
      names: pairs.map(([, outer]) => outer.Name),
      all: false,
      except: id,
      signal,
    })
    const pair = pairs.find(([, outer]) => written.has(outer.Name))
    if (!pair) return
    const [inner, outer] = pair
    throw new EngineError(
      'conflict',
      `The volume at ${inner.Destination} lies within the one at ${outer.Destination}, to which another container writes.`,
      'Mount them side by side, or mount the outer one read-only everywhere else.',
    )
  }

  return {
    /** Does what makes the engine mount the volumes of a container that was created and never ran. */
    async whileSafe<T>(created: Created, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
      const volumes = volumesOf(created.info.Mounts)
      if (volumes.length < 2) return work()
      const paths = volumes.map(({ Destination }) => Destination).sort()
      const pairs = nested(volumes, await placesIn(created, paths, signal))
      if (pairs.length === 0) return work()
      return containers.alone(async () => {
        await requireUnwritten(created.info.Id, pairs, signal)
        return work()
      })
    },
  }
}
