import * as v from 'valibot'

const Bytes = (what: string) => v.pipe(v.number(), v.description(`${what}, in bytes.`))
const part = (what: string) => ({
  count: v.pipe(v.number(), v.description(`How many ${what} there are.`)),
  bytes: Bytes(`What all ${what} take`),
})

export const DiskUsage = v.pipe(
  v.object({
    measured_at: v.pipe(v.string(), v.description('When this was measured.')),
    disks: v.pipe(
      v.array(
        v.object({
          path: v.string(),
          holds: v.pipe(v.array(v.picklist(['engine', 'data'])), v.description('What lies on this disk.')),
          total_bytes: Bytes('Size of the disk, without what its file system keeps for the administrator'),
          free_bytes: Bytes('What is free on it'),
        }),
      ),
      v.description('Disks of the engine and of the data directory; one when both are the same.'),
    ),
    total_bytes: Bytes(
      'Size of the disk of the engine, without what its file system keeps for the administrator',
    ),
    free_bytes: Bytes('What is free on the disk of the engine'),
    images: v.object({
      ...part('images'),
      reclaimable_bytes: Bytes('What a prune of images would free at least'),
    }),
    containers: v.object(part('containers')),
    volumes: v.object(part('volumes')),
    build_cache: v.object({
      ...part('entries of the build cache'),
      reclaimable_bytes: Bytes('What a prune of the build cache would free'),
    }),
    logs: v.object({
      bytes: Bytes('Logs of deployments, requests and instances'),
      deployments_bytes: Bytes('Logs of deployments'),
      access_bytes: Bytes('Logs of requests'),
      runtime_bytes: Bytes('What instances printed'),
    }),
    backups: v.object({ bytes: Bytes('Backups below the data directory') }),
    database: v.object({ bytes: Bytes('The database of Portreeve, with its write-ahead log') }),
    other: v.object({ bytes: Bytes('The rest of the data directory: uploads, checkouts, the edge') }),
  }),
  v.title('DiskUsage'),
)
export type DiskUsage = v.InferOutput<typeof DiskUsage>

export const PRUNE_TARGETS = ['images', 'build_cache', 'logs'] as const
export type PruneTarget = (typeof PRUNE_TARGETS)[number]

export const PruneRequest = v.strictObject({
  dry_run: v.pipe(
    v.optional(v.boolean(), false),
    v.description('Whether to tell what would go, and change nothing. Default false.'),
  ),
  targets: v.pipe(
    v.optional(
      v.pipe(v.array(v.picklist(PRUNE_TARGETS)), v.minLength(1), v.maxLength(PRUNE_TARGETS.length)),
      [...PRUNE_TARGETS],
    ),
    v.description('What to prune. Default: all of it.'),
  ),
  older_than_hours: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(87_600)), 0),
    v.description(
      'Hours for which images and build cache must have been unused. Logs are taken after seven days, whatever is said here. Default 0.',
    ),
  ),
})
export type PruneRequest = v.InferOutput<typeof PruneRequest>

export const PruneResult = v.pipe(
  v.object({
    dry_run: v.boolean(),
    freed_bytes: Bytes('What is free now that was not before; in a dry run what would be'),
    items: v.pipe(
      v.array(
        v.object({
          target: v.picklist(PRUNE_TARGETS),
          count: v.pipe(v.number(), v.description('Images, entries of the cache, or files.')),
          bytes: Bytes('What they take alone'),
          names: v.pipe(v.array(v.string()), v.description('The first hundred by name.')),
        }),
      ),
      v.description('What went, or would go, by kind.'),
    ),
  }),
  v.title('PruneResult'),
)
export type PruneResult = v.InferOutput<typeof PruneResult>
