import { posix } from 'node:path'
import { foldersAbove, isWithin } from '#server/kernel/mount-path'
import type { Connection } from '../connection.ts'
import { EngineError } from '../engine.ts'
import type { LabelScope } from '../labels.ts'
import { type Components, runcVersion, takesLinksForDevices } from '../runc.ts'
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
/** Where paths of a container lead, and which of those on the way its image lacks. */
interface Places {
  of: ReadonlyMap<string, string>
  lacking: ReadonlySet<string>
}
/** What of a container makes its volumes stay in their places. */
export type Firm = Pick<ContainerSpec, 'mounts' | 'pins'>
/** The engine's word for what the image does not have. */
const ADDED = 1
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

const tookThePlace = (path: string, place: string) =>
  new EngineError(
    'conflict',
    `A volume at ${path} would take the place of ${place}, to which a link leads there.`,
    'Remove the link from the image or the volume, or mount the volume somewhere else.',
  )

/** Places that the engine fills before it mounts volumes, each of which stands in its own way where it is meant. */
const FILLED = ['/dev', '/proc', '/sys']

/**
 * Throws where a link leads what is mounted to the devices of a container: what runc before 1.2.8 and 1.3.3 finds there
 * it takes for them (CVE-2025-31133), so that a link called `null` in the volume gives the container a file of this
 * machine's kernel for its output.
 */
function requirePlain({ of }: Places): void {
  for (const [path, place] of of) {
    const is_filled = place !== path && FILLED.some((filled) => isWithin(place, filled))
    if (place === '/' || place === '/dev' || is_filled) throw tookThePlace(path, place)
  }
}

/**
 * Guards what the engine does with the files of a container that does not run. It mounts the volumes for that, one
 * after the other: it looks up where each belongs and mounts it there a moment later, by its path on this machine.
 * Whoever can write to the outer one of two volumes meanwhile can put a link there, and has a volume of theirs
 * mounted over a folder of the machine itself.
 */
export function createPlaces(connection: Connection, containers: Containers) {
  const known = new Map<string, Places>()
  let takes_links: Promise<boolean> | undefined

  const takesLinks = (): Promise<boolean> =>
    (takes_links ??= connection
      .call<Components>({ path: '/version' })
      .then((version) => takesLinksForDevices(runcVersion(version)))
      .catch((error: unknown) => {
        takes_links = undefined
        throw error
      }))

  /** What a path of a container leads to: itself, or where the link at it ends; undefined where nothing is. */
  async function targetOf(id: string, path: string, signal: AbortSignal): Promise<string | undefined> {
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
      if (error instanceof EngineError && error.code === 'not_found') return undefined
      throw error
    }
  }

  async function walk(id: string, paths: readonly string[], signal: AbortSignal): Promise<Places> {
    const places = { of: new Map<string, string>(), lacking: new Set<string>() }
    for (const path of paths) {
      let place = '/'
      for (const part of path.split('/').filter(Boolean)) {
        const next = posix.join(place, part)
        const target = await targetOf(id, next, signal)
        if (target === undefined) places.lacking.add(next)
        place = target ?? next
      }
      places.of.set(path, place)
    }
    return places
  }

  /** Where paths lead in the image alone: in a container of it that has no volume of others, and never runs. */
  async function placesIn(
    { info: { Id, Image }, spec }: Created,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<Places> {
    const key = JSON.stringify([Image, ...paths])
    const before = known.get(key)
    if (before) return before
    const bare = { ...spec, mounts: [], pins: [], aliases: [] }
    const name = `${Id.slice(0, 12)}-places`
    const id = await containers.create(name, containerBody(containers.scope, bare, { labels: {} }), signal)
    try {
      const { of, lacking } = await walk(id, paths, signal)
      // To look at it, the engine has made the folders of the image's own volumes.
      const changes = await connection.call<{ Path: string; Kind: number }[] | null>({
        path: `/containers/${encodeURIComponent(id)}/changes`,
        signal,
      })
      const added = (changes ?? []).filter(({ Kind }) => Kind === ADDED).map(({ Path }) => Path)
      const places = { of, lacking: new Set([...lacking, ...added]) }
      if (known.size >= MOST_KNOWN) known.clear()
      known.set(key, places)
      return places
    } finally {
      await containers.remove(id)
    }
  }

  /**
   * How a container has to be made so that its program cannot lead a volume to the devices before the engine starts it
   * again; undefined where it is made so. It could move a folder above a volume that the image lacks, and each link on
   * the way: one of the image's own folders stays where it is.
   */
  function firmly({ spec }: Created, volumes: readonly Volume[], { of, lacking }: Places): Firm | undefined {
    const placeOf = (path: string) => of.get(path) ?? path
    const mounts = (spec.mounts ?? []).map((mount) =>
      mount.kind === 'volume' ? { ...mount, path: placeOf(mount.path) } : mount,
    )
    const places = new Set(volumes.map(({ Destination }) => placeOf(Destination)))
    for (const { Destination } of volumes) {
      const place = placeOf(Destination)
      if (place !== Destination && !mounts.some(({ path }) => path === place))
        throw tookThePlace(Destination, place)
    }
    // What is in a volume is not hidden by another one.
    const isOpen = (path: string) =>
      lacking.has(path) && !foldersAbove(`${path}/`).some((one) => places.has(one))
    const pins = [...new Set([...places].flatMap(foldersAbove).filter(isOpen))]
    const is_firm = mounts.every(({ path }, at) => path === spec.mounts![at]!.path)
    return is_firm && pins.length === 0 ? undefined : { mounts, pins: [...(spec.pins ?? []), ...pins] }
  }

  /** Which of the outer volumes something that may run can write to. */
  const writtenOuter = (id: string, pairs: readonly [inner: Volume, outer: Volume][], signal: AbortSignal) =>
    writtenVolumes(connection, {
      names: pairs.map(([, outer]) => outer.Name),
      all: false,
      except: id,
      signal,
    })

  /** Looks along the links of the outer volumes, too, which nobody else writes to meanwhile. */
  async function withNested(
    id: string,
    pairs: readonly [inner: Volume, outer: Volume][],
    work: (() => Promise<void>) | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const written = await writtenOuter(id, pairs, signal)
    const pair = pairs.find(([, outer]) => written.has(outer.Name))
    if (pair && !work) return
    if (pair) throw withinWritten(...pair)
    const inner = pairs.map(([{ Destination }]) => Destination)
    requirePlain(await walk(id, inner, signal))
    await work?.()
  }

  return {
    /**
     * Does what makes the engine mount the volumes of a container that was created and never ran, if there is
     * anything to do; throws where one of them would take the place of devices. Answers how it has to
     * be made instead, where the engine is to start it again by itself.
     */
    async whileSafe(
      created: Created,
      work: (() => Promise<void>) | undefined,
      signal: AbortSignal,
    ): Promise<Firm | undefined> {
      const volumes = volumesOf(created.info.Mounts)
      if (volumes.length === 0) {
        await work?.()
        return undefined
      }
      const paths = volumes.map(({ Destination }) => Destination).sort()
      const places = await placesIn(created, paths, signal)
      requirePlain(places)
      const firm = (await takesLinks()) ? firmly(created, volumes, places) : undefined
      const pairs = nested(volumes, places.of)
      if (pairs.length === 0) await work?.()
      else await containers.alone(() => withNested(created.info.Id, pairs, work, signal))
      return firm
    },
  }
}
