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

const withinWritten = (inner: Volume, outer: Volume) =>
  new EngineError(
    'conflict',
    `The volume at ${inner.Destination} lies within the one at ${outer.Destination}, to which another container writes.`,
    'Mount them side by side, or mount the outer one read-only everywhere else.',
  )

/** Places that the engine fills before it mounts volumes, each of which stands in its own way where it is meant. */
const FILLED = ['/dev', '/proc', '/sys']

/**
 * Throws where a link leads what is mounted to the devices of a container: what runc before 1.2.8 and 1.3.3 finds there
 * it takes for them (CVE-2025-31133), so that a link called `null` in the volume gives the container a file of this
 * machine's kernel for its output.
 */
function requirePlain(places: ReadonlyMap<string, string>): void {
  for (const [path, place] of places) {
    const is_filled = place !== path && FILLED.some((filled) => isWithin(place, filled))
    if (place === '/' || place === '/dev' || is_filled)
      throw new EngineError(
        'conflict',
        `A volume at ${path} would take the place of ${place}, to which a link leads there.`,
        'Remove the link from the image or the volume, or mount the volume somewhere else.',
      )
  }
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

  async function walk(
    id: string,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const places = new Map<string, string>()
    for (const path of paths) {
      let place = '/'
      for (const part of path.split('/').filter(Boolean))
        place = await targetOf(id, posix.join(place, part), signal)
      places.set(path, place)
    }
    return places
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
    // On the way to the only volume there is no other.
    const is_alone = paths.length === 1
    const bare = { ...spec, mounts: [], aliases: [] }
    const name = `${Id.slice(0, 12)}-places`
    const id = is_alone
      ? Id
      : await containers.create(name, containerBody(containers.scope, bare, { labels: {} }), signal)
    try {
      const places = await walk(id, paths, signal)
      if (known.size >= MOST_KNOWN) known.clear()
      known.set(key, places)
      return places
    } finally {
      if (!is_alone) await containers.remove(id)
    }
  }

  /** Which of the outer volumes something that may run can write to. */
  const writtenOuter = (id: string, pairs: readonly [inner: Volume, outer: Volume][], signal: AbortSignal) =>
    writtenVolumes(connection, {
      names: pairs.map(([, outer]) => outer.Name),
      all: false,
      except: id,
      signal,
    })

  return {
    /**
     * Does what makes the engine mount the volumes of a container that was created and never ran, if there is
     * anything to do; throws where one of them would take the place of devices.
     */
    async whileSafe(
      created: Created,
      work: (() => Promise<void>) | undefined,
      signal: AbortSignal,
    ): Promise<void> {
      const volumes = volumesOf(created.info.Mounts)
      if (volumes.length === 0) return work?.()
      const paths = volumes.map(({ Destination }) => Destination).sort()
      const places = await placesIn(created, paths, signal)
      requirePlain(places)
      const pairs = nested(volumes, places)
      if (pairs.length === 0) return work?.()
      await containers.alone(async () => {
        const written = await writtenOuter(created.info.Id, pairs, signal)
        const pair = pairs.find(([, outer]) => written.has(outer.Name))
        if (pair && !work) return
        if (pair) throw withinWritten(...pair)
        const inner = pairs.map(([{ Destination }]) => Destination)
        requirePlain(await walk(created.info.Id, inner, signal))
        await work?.()
      })
    },
  }
}
