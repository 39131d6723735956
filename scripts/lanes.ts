import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Seconds that files took beside the other lanes, where they are far from the usual ones: what a
 * run tells in its last lines. Wrong numbers only make one lane wait for the other.
 */
const SECONDS: Record<string, number> = {
  'test/e2e/backups.test.ts': 143,
  'test/e2e/binary.test.ts': 190,
  'test/e2e/certificates.test.ts': 58,
  'test/e2e/client.test.ts': 93,
  'test/e2e/compose.test.ts': 91,
  'test/e2e/crash.test.ts': 49,
  'test/e2e/cron.test.ts': 33,
  'test/e2e/dashboard-domain.test.ts': 19,
  'test/e2e/dashboard-terminal.test.ts': 30,
  'test/e2e/dashboard.test.ts': 250,
  'test/e2e/databases.test.ts': 57,
  'test/e2e/domains.test.ts': 28,
  'test/e2e/engine-fetches.test.ts': 26,
  'test/e2e/event-loop.test.ts': 35,
  'test/e2e/flood.test.ts': 39,
  'test/e2e/install.test.ts': 58,
  'test/e2e/isolation.test.ts': 42,
  'test/e2e/move.test.ts': 41,
  'test/e2e/nodes.test.ts': 110,
  'test/e2e/previews.test.ts': 78,
  'test/e2e/private-images.test.ts': 20,
  'test/e2e/private-sources.test.ts': 46,
  'test/e2e/rotate-key.test.ts': 27,
  'test/e2e/runtime-logs.test.ts': 65,
  'test/e2e/scaling.test.ts': 46,
  'test/e2e/secret-canary.test.ts': 137,
  'test/e2e/sockets.test.ts': 61,
  'test/e2e/start-faults.test.ts': 21,
  'test/e2e/story.test.ts': 98,
  'test/e2e/templates.test.ts': 293,
  'test/e2e/terminal.test.ts': 24,
  'test/e2e/upgrade.test.ts': 145,
  'test/e2e/variables.test.ts': 45,
  'test/e2e/volume-backups.test.ts': 57,
  'test/e2e/volumes.test.ts': 27,
  'test/e2e/zero-downtime.test.ts': 22,
  'test/engine/cluster.test.ts': 70,
  'test/engine/database-engines.test.ts': 23,
  'test/engine/engine-build-holes.test.ts': 20,
  'test/engine/engine-containers.test.ts': 42,
  'test/engine/engine-contract.test.ts': 53,
  'test/engine/generated-dockerfiles.test.ts': 180,
  'test/engine/ingress-crowd.test.ts': 20,
  'test/engine/ingress-recovery.test.ts': 19,
}
const USUAL_S = 8

/**
 * Which of `files` the lane `index` (from 1) of `count` runs: the longest first, each to the lane
 * that has least to do so far. The same for every lane that is given the same files.
 */
export function laneOf(files: readonly string[], index: number, count: number, known = SECONDS): string[] {
  const seconds = (file: string) => known[file] ?? USUAL_S
  const lanes = Array.from({ length: count }, () => ({ files: [] as string[], seconds: 0 }))
  const longest_first = [...files].sort((a, b) => seconds(b) - seconds(a) || a.localeCompare(b))
  for (const file of longest_first) {
    const lane = lanes.reduce((least, other) => (other.seconds < least.seconds ? other : least))
    lane.files.push(file)
    lane.seconds += seconds(file)
  }
  return lanes[index - 1]!.files
}

/** Splits a run (`--shard`) by how long files take, in place of how many there are. */
export class LaneSequencer extends BaseSequencer {
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root, shard } = this.ctx.config
    if (!shard) return files
    const pathOf = (file: TestSpecification) => relative(root, file.moduleId)
    const mine = new Set(laneOf(files.map(pathOf), shard.index, shard.count))
    return files.filter((file) => mine.has(pathOf(file)))
  }
}
