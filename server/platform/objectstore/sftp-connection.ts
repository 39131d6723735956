import { sshFingerprint } from '#server/kernel/ssh-fingerprint'
import type { Client, SFTPWrapper } from 'ssh2'
import type { Dial } from '#server/platform/outbound/outbound'
import { OutboundError } from '#server/platform/outbound/outbound'
import { loadSsh } from '#server/platform/load-ssh'
import { missing, ObjectStoreError } from './objectstore.ts'

export interface SftpConfig {
  host: string
  port: number
  username: string
  password?: string
  private_key?: string
  /** Fingerprint of the server's key, as `ssh-keygen -lf` prints it. */
  host_key?: string
  path: string
}
export interface SftpConnection {
  sftp: SFTPWrapper
  client: Client
}

const CONNECT_MS = 15_000
/**
 * A server that is alive and answers nothing, such as one whose disk hangs, holds work for so long: its keep-alive
 * answers say nothing about its files.
 */
export const SILENCE_MS = 120_000
export const silent = () => new ObjectStoreError('unreachable', 'The SFTP server did not answer in time.')
/** Status codes of the protocol. */
export const NO_SUCH_FILE = 2
const PERMISSION_DENIED = 3

/** What the server answered, in words. */
export function explainSftp(error: unknown, host: string): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error
  const { code, message = '', level } = error as { code?: unknown; message?: string; level?: string }
  if (code === NO_SUCH_FILE) return missing()
  if (code === PERMISSION_DENIED)
    return new ObjectStoreError('denied', `${host} does not let this user write there.`)
  if (/no space|quota|disk full/i.test(message))
    return new ObjectStoreError('full', `${host} has no space left. Free space, then try again.`)
  if (level === 'client-authentication')
    return new ObjectStoreError('denied', `${host} refused the login. Check user name, password or key.`)
  if (typeof code === 'number')
    return new ObjectStoreError(
      'failed',
      `${host} refused to write or read (status ${code}). Check the folder and the space on its disk.`,
    )
  return new ObjectStoreError('unreachable', `The connection to ${host} broke.`, { cause: error })
}

/** Logs in over a connection to a checked address; the server must show the key that was approved. */
export async function connectSftp(
  dial: Dial,
  config: SftpConfig,
  silence_ms = SILENCE_MS,
): Promise<SftpConnection> {
  const { Client: SshClient, utils } = await loadSsh()
  if (config.private_key !== undefined) {
    const parsed = utils.parseKey(config.private_key)
    if (parsed instanceof Error)
      throw new ObjectStoreError('denied', 'The private key cannot be read. It must have no passphrase.')
  }
  const socket = await dial(config.host, config.port, { timeout_ms: CONNECT_MS }).catch((error: unknown) => {
    const message = error instanceof OutboundError ? error.message : `${config.host} cannot be reached.`
    throw new ObjectStoreError('unreachable', message, { cause: error })
  })
  // Small requests and their answers would wait for each other otherwise.
  socket.setNoDelay(true)
  const client = new SshClient()
  let shown = ''
  let timer: NodeJS.Timeout | undefined
  return new Promise<SftpConnection>((resolve, reject) => {
    const fail = (error: unknown) => {
      clearTimeout(timer)
      client.end()
      socket.destroy()
      if (shown !== '' && shown !== config.host_key)
        reject(
          new ObjectStoreError(
            'host_key',
            config.host_key === undefined
              ? `${config.host} shows the key ${shown}. Compare it with the server's own, then send it as host_key.`
              : `${config.host} shows the key ${shown}, not the approved one, ${config.host_key}. Nothing was sent to it.`,
          ),
        )
      else reject(explainSftp(error, config.host))
    }
    client
      .once('ready', () => {
        // Whoever lets us in may still open nothing, for ever.
        timer = setTimeout(() => fail(silent()), silence_ms)
        client.sftp((error, sftp) => {
          if (error) return fail(error)
          clearTimeout(timer)
          resolve({ client, sftp })
        })
      })
      .on('error', fail)
      .connect({
        sock: socket,
        username: config.username,
        ...(config.password === undefined ? {} : { password: config.password }),
        ...(config.private_key === undefined ? {} : { privateKey: config.private_key }),
        readyTimeout: CONNECT_MS,
        keepaliveInterval: 10_000,
        hostVerifier: (key: Buffer) => {
          shown = sshFingerprint(key)
          return shown === config.host_key
        },
      })
  })
}
