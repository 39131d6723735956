import { createLogSegments } from '#server/kernel/log-segments'
import type { AccessLine } from './schema.ts'

/** Access logs on disk: per app at most five files of 2 MiB. */
export const createAccessFiles = (directory: string) =>
  createLogSegments<AccessLine>(directory, () => ({ bytes: 2 * 1024 * 1024, count: 5 }))
