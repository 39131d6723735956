import { chmodSync, closeSync, constants, mkdirSync, openSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Log } from '#server/kernel/log'
import { WAKE_FOLDER } from './files.ts'
import type { WakeFollowing } from './ingress.ts'

const SOCKET_NAME = 'portreeve.sock'
/** Where the edge's workers find the socket. */
export const EDGE_WAKE_SOCKET = `/edge/${WAKE_FOLDER}/${SOCKET_NAME}`
const MAX_LINE = 200
const PATIENCE_MS = 2_000
const MAX_CONNECTIONS = 256
const APP_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/

/**
 * Listens for the edge's word that somebody asks for an app that sleeps: one line with its id, one line back.
 * The socket can be opened by whoever reaches its folder, which is the edge alone, and can do nothing but this.
 */
export function listenForWakes({
  directory,
  log,
  signal,
  onWake,
}: WakeFollowing & { directory: string; log: Log }): void {
  const folder = join(directory, WAKE_FOLDER)
  mkdirSync(folder, { recursive: true, mode: 0o711 })
  const path = join(folder, SOCKET_NAME)
  rmSync(path, { force: true })
  const server = createServer((socket) => answer(socket, onWake))
  server.maxConnections = MAX_CONNECTIONS
  server.on('error', (error) => log.warn('The edge cannot ask for apps that sleep', { error }))
  // Through the open folder, since a socket's address is short and the path of a folder need not be.
  const opened = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  server.listen(`/proc/self/fd/${opened}/${SOCKET_NAME}`, () => chmodSync(path, 0o666))
  // Closing removes the socket by the path that it was opened by.
  server.on('close', () => closeSync(opened))
  server.unref()
  const close = () => void server.close()
  if (signal.aborted) close()
  else signal.addEventListener('abort', close, { once: true })
}

function answer(socket: Socket, onWake: WakeFollowing['onWake']): void {
  let text = ''
  socket.setEncoding('utf8')
  socket.setTimeout(PATIENCE_MS, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: string) => {
    text += chunk
    const end = text.indexOf('\n')
    if (end === -1 && text.length <= MAX_LINE) return
    const app_id = text.slice(0, Math.max(end, 0))
    if (!APP_ID.test(app_id)) return void socket.destroy()
    socket.end(`${onWake(app_id)}\n`)
  })
}
