import { closeSync, constants, openSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import { IngressError } from '../ingress.ts'

/** Longest path that fits a Unix socket's address on Linux, without the closing zero. */
const MAX_SOCKET_PATH_BYTES = 107

/**
 * Connects to a Unix socket. A path too long for a socket address is reached through the open folder in
 * /proc, which needs no link in a public place that somebody else could have put there first.
 */
export function connectUnix(socket_path: string): Socket {
  if (Buffer.byteLength(socket_path) <= MAX_SOCKET_PATH_BYTES) return connect(socket_path)
  const folder = openFolder(socket_path)
  return connect(`/proc/self/fd/${folder}/${basename(socket_path)}`).once('close', () => closeSync(folder))
}

function openFolder(socket_path: string): number {
  try {
    return openSync(dirname(socket_path), constants.O_RDONLY | constants.O_DIRECTORY)
  } catch (error) {
    throw new IngressError('The edge does not answer; its folder is missing.', { cause: error })
  }
}
