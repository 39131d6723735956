import { freeForCopies } from '#server/kernel/disk-reserve'
import { isOwnImage } from '#server/kernel/image-reference'
import type { Connection } from './connection.ts'
import { type LabelScope, ownLabel } from './labels.ts'
import type { CacheLimit, DiskCache, DiskImage, EngineDisk } from './disk-usage.ts'
import { imagePath } from './images.ts'
import type { InTurn } from './turn.ts'

/** The engine walks its files. */
const USAGE_DEADLINE_MS = 600_000
const PRUNE_DEADLINE_MS = 600_000

/** What is kept of the answer. */
interface Usage {
  LayersSize?: number
  Images?: DiskImage[] | null
  Containers?: (number | undefined)[] | null
  Volumes?: (number | undefined)[] | null
  BuildCache?: DiskCache[] | null
}
interface RawImage {
  Id: string
  RepoTags: string[] | null
  RepoDigests: string[] | null
  Size: number
  SharedSize: number
  Containers: number
  Created: number
  Labels: Record<string, string> | null
}
interface RawCache {
  ID: string
  Size: number
  InUse: boolean
  CreatedAt: string
  LastUsedAt: string | null
}
const NO_NAME = /^<none>[:@]<none>$/
const NEVER = '0001-01-01T00:00:00Z'

const toCache = ({ ID, Size, InUse, CreatedAt, LastUsedAt }: RawCache): DiskCache => ({
  id: ID,
  bytes: Size,
  in_use: InUse,
  last_used_at: LastUsedAt ?? CreatedAt,
})

/** What the engine's disk is used for, and making room on it. */
export function createDisk(connection: Connection, scope: LabelScope, inTurn: InTurn) {
  const namesIn = (names: readonly string[] | null) => (names ?? []).filter((name) => !NO_NAME.test(name))
  /** What was fetched says of itself what a stranger likes; as one of another installation it would stay for good. */
  const madeBy = ({ Labels, RepoDigests }: RawImage): DiskImage['made_by'] => {
    if (scope.owns(Labels)) return 'us'
    const is_fetched = namesIn(RepoDigests).some((name) => !isOwnImage(name))
    return is_fetched || ownLabel(Labels, 'managed') === undefined ? 'nobody' : 'another'
  }
  const toImage = (raw: RawImage): DiskImage => ({
    id: raw.Id,
    tags: namesIn(raw.RepoTags),
    digests: namesIn(raw.RepoDigests),
    own_bytes: Math.max(0, raw.Size - Math.max(0, raw.SharedSize)),
    containers: Math.max(0, raw.Containers),
    made_by: madeBy(raw),
    since: new Date(raw.Created * 1000).toISOString(),
  })
  /** Labels of images, and commands of build steps, are as long as their authors like. */
  const keep = (entry: unknown, list: string): unknown => {
    if (list === 'Images') return toImage(entry as RawImage)
    if (list === 'BuildCache') return toCache(entry as RawCache)
    if (list === 'Containers') return (entry as { SizeRw?: number }).SizeRw
    return (entry as { UsageData?: { Size: number } | null }).UsageData?.Size
  }
  const directory = async (signal?: AbortSignal): Promise<string> =>
    (await connection.call<{ DockerRootDir?: string }>({ path: '/info', signal })).DockerRootDir ?? ''
  return {
    directory,
    freeForCopies: async (signal?: AbortSignal) =>
      connection.local ? freeForCopies(await directory(signal)) : undefined,
    async usage(signal?: AbortSignal): Promise<EngineDisk> {
      const [root, usage] = await Promise.all([
        directory(signal),
        inTurn(() =>
          connection.call<Usage>({ path: '/system/df', signal, deadline_ms: USAGE_DEADLINE_MS, keep }),
        ),
      ])
      const sum = (sizes: (number | undefined)[]) =>
        sizes.reduce<number>((all, size) => all + Math.max(0, size ?? 0), 0)
      const { Images, Containers, Volumes, BuildCache } = usage
      return {
        directory: root,
        layers_bytes: usage.LayersSize ?? 0,
        images: Images ?? [],
        containers: { count: Containers?.length ?? 0, bytes: sum(Containers ?? []) },
        volumes: { count: Volumes?.length ?? 0, bytes: sum(Volumes ?? []) },
        build_cache: BuildCache ?? [],
      }
    },
    /** When an image was last pulled or named here; undefined when it is gone or was never. */
    async namedAt(id: string): Promise<string | undefined> {
      const info = await connection.call<{ Metadata?: { LastTagTime?: string } } | undefined>({
        path: imagePath(id, '/json'),
        accept: [404],
      })
      const at = info?.Metadata?.LastTagTime
      return at === undefined || at.startsWith(NEVER.slice(0, 10)) ? undefined : new Date(at).toISOString()
    },
    /**
     * Removes build cache: what was not used for so long, or what was used longest ago until no
     * more than so much is left. Answers the bytes that it freed.
     */
    async pruneCache({ unused_for_s, keep_bytes }: CacheLimit): Promise<number> {
      const filters = unused_for_s === undefined ? {} : { until: [`${Math.max(0, unused_for_s)}s`] }
      const answer = await connection.call<{ SpaceReclaimed?: number } | undefined>({
        method: 'POST',
        path: '/build/prune',
        query: { all: true, 'keep-storage': keep_bytes, filters: JSON.stringify(filters) },
        deadline_ms: PRUNE_DEADLINE_MS,
      })
      return answer?.SpaceReclaimed ?? 0
    },
  }
}
