import { createWriteStream, existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { requireFree } from '#server/kernel/disk-reserve'
import { ApiError } from '#server/kernel/errors'
import type { ArchivedDeployment, DeploymentRepository } from './repository.ts'

/** Largest archive of `POST /api/apps/:id/upload`. */
export const MAX_UPLOAD_BYTES = 512 * 1024 * 1024

/** How often it is looked whether the disk still has room for what nobody announced. */
const LOOK_EVERY_BYTES = 16 * 1024 * 1024
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
const isUnpacked = ({ failed_step }: ArchivedDeployment): boolean => failed_step !== 'clone'

type Archives = Pick<DeploymentRepository, 'archived'>
const current = (rows: readonly ArchivedDeployment[]): ArchivedDeployment | undefined =>
  rows.find(isUnpacked) ?? rows[0]

/**
 * Name of the archive that the next deployment of an app is made of: the newest that could be
 * unpacked, so that one that was damaged on its way is not in the way of the good one from before.
 */
export const currentArchive = (deployments: Archives, app_id: string): string | undefined =>
  current(deployments.archived(app_id))?.upload

/** Of these, the deployments whose archives stay. */
function needed(rows: readonly ArchivedDeployment[]): ArchivedDeployment[] {
  // One that is under way may turn out to be damaged.
  const good = rows.find((row) => row.finished_at && isUnpacked(row))
  const under_way = rows.filter((row) => !row.finished_at)
  return [current(rows), good, ...under_way].filter((row) => row !== undefined)
}

/** Deployments without which it could not be told any more which archives of an app are needed. */
export const archivesKeptBy = (deployments: Archives, app_id: string): string[] =>
  needed(deployments.archived(app_id)).map(({ id }) => id)

/**
 * Removes the archives of an app that nothing will be built from: the one for the next deployment
 * is kept, and those that a deployment under way needs.
 */
export function pruneArchives(deployments: Archives, directory: string, app_id: string): void {
  const rows = deployments.archived(app_id)
  const kept = new Set(needed(rows).map(({ upload }) => upload))
  for (const upload of new Set(rows.map((row) => row.upload)))
    if (!kept.has(upload)) rmSync(join(directory, upload), { force: true })
}

/**
 * Removes what a process that was killed was still receiving, or had received while no deployment knew of it yet.
 * Only for a start, before anybody can send something.
 */
export function removeUnknownArchives(
  deployments: Pick<DeploymentRepository, 'archiveNames'>,
  directory: string,
): void {
  if (!existsSync(directory)) return
  const known = deployments.archiveNames()
  for (const name of readdirSync(directory))
    if (!known.has(name)) rmSync(join(directory, name), { force: true })
}
