import { createWriteStream, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { requireFree } from '#server/kernel/disk-reserve'
import { ApiError } from '#server/kernel/errors'
import type { Failure } from '#server/kernel/jobs/definition'
import { requestOf, type DeploymentRepository, type DeploymentRow } from './repository.ts'

/** Largest archive of `POST /api/apps/:id/upload`. */
export const MAX_UPLOAD_BYTES = 512 * 1024 * 1024

/** How often it is looked whether the disk still has room for what nobody announced. */
const LOOK_EVERY_BYTES = 16 * 1024 * 1024
/** Deployments of an app that are looked through for archives. */
const LOOKED_AT = 100

/** Writes an upload to its file; a body that is too large or breaks off leaves nothing behind. */
export async function receive(
  directory: string,
  name: string,
  stream: Readable,
  content_length = 0,
): Promise<void> {
  requireFree(directory, content_length)
  const partial = join(directory, `${name}.partial`)
  let size = 0
  let next_look = LOOK_EVERY_BYTES
  try {
    await pipeline(
      stream,
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          size += chunk.length
          if (size > MAX_UPLOAD_BYTES)
            throw new ApiError('PAYLOAD_TOO_LARGE', `The archive is larger than ${MAX_UPLOAD_BYTES} bytes.`)
          if (size >= next_look) {
            requireFree(directory)
            next_look = size + LOOK_EVERY_BYTES
          }
          yield chunk
        }
      },
      createWriteStream(partial, { mode: 0o600 }),
    )
    if (size === 0)
      throw new ApiError('BAD_REQUEST', 'The body is empty. Send a gzipped tar of the source folder.')
    renameSync(partial, join(directory, name))
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  }
}

/** Whether an archive was unpacked, as far as its deployment tells: what could not be is of no use. */
const isUnpacked = ({ failure }: Pick<DeploymentRow, 'failure'>): boolean =>
  failure === null || (JSON.parse(failure) as Failure).step !== 'clone'

/** Deployments of an app that were made of an archive, the newest first. */
const uploadsOf = (deployments: Pick<DeploymentRepository, 'history'>, app_id: string) =>
  deployments.history(app_id, LOOKED_AT, 0).rows.filter((row) => requestOf(row).upload)
const current = <Row extends Pick<DeploymentRow, 'failure'>>(rows: readonly Row[]): Row | undefined =>
  rows.find(isUnpacked) ?? rows[0]

/**
 * Name of the archive that the next deployment of an app is made of: the newest that could be unpacked, so that one
 * that was damaged on its way is not in the way of the good one from before.
 */
export function currentArchive(
  deployments: Pick<DeploymentRepository, 'history'>,
  app_id: string,
): string | undefined {
  const last = current(uploadsOf(deployments, app_id))
  return last && requestOf(last).upload
}

/**
 * Removes the archives of an app that nothing will be built from: the one for the next deployment is kept, and those
 * that a deployment under way needs.
 */
export function pruneArchives(
  deployments: Pick<DeploymentRepository, 'history'>,
  directory: string,
  app_id: string,
): void {
  const rows = uploadsOf(deployments, app_id)
  // One that is under way may turn out to be damaged.
  const good = rows.find((row) => row.finished_at && isUnpacked(row))
  const needed = [current(rows), good, ...rows.filter((row) => !row.finished_at)]
  const kept = new Set(needed.map((row) => row && requestOf(row).upload))
  for (const row of rows) {
    const { upload } = requestOf(row)
    if (upload && !kept.has(upload)) rmSync(join(directory, upload), { force: true })
  }
}
