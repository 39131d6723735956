import type { Duplex } from 'node:stream'
import { sshFingerprint } from '#server/kernel/ssh-fingerprint'
import type { Client, ClientChannel } from 'ssh2'
import type { Dial } from '#server/platform/outbound/outbound'
import { OutboundError } from '#server/platform/outbound/outbound'
import { loadSsh } from '#server/platform/load-ssh'
import { ClusterError, type NodeTarget } from './cluster.ts'
import { quoteCommand } from './quote.ts'

/** A login at another server. */
export interface Ssh {
  /** Fingerprint of the key that it showed. */
  readonly host_key: string
  /** The address that it was reached at. */
  readonly address: string
  /** Starts a command from its arguments. */
  exec(argv: readonly string[]): Promise<ClientChannel>
  /** Opens a stream to a socket in its file system. */
  openSocket(path: string): Promise<Duplex>
  /** Settles once the connection is over, whoever ended it. */
  readonly closed: Promise<void>
  close(): void
}

const CONNECT_MS = 10_000
/** A peer that was cut off is noticed within three of them. */
const KEEPALIVE_MS = 5_000
const KEEPALIVES = 3
/** A server that answers keepalives and nothing else is told from one that takes its time. */
const OPEN_MS = 20_000

/** Rejects where a channel is not opened in time; one that is opened later is closed. */
export async function openedWithin<T extends Duplex>(opening: Promise<T>, open_ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      void opening.then(
        (channel) => channel.destroy(),
        () => {},
      )
      reject(Object.assign(new Error('the server opens no channel'), { code: 'ECONNRESET' }))
    }, open_ms)
  })
  try {
    return await Promise.race([opening, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Why a login failed, in words; what the other side says is not repeated. */
function explain(error: unknown, { address, user, host_key }: NodeTarget, shown: string): ClusterError {
  if (error instanceof ClusterError) return error
  if (shown !== '' && shown !== host_key)
    return new ClusterError(
      'host_key',
      host_key === undefined
        ? `${address} shows the key ${shown}.`
        : `${address} shows the key ${shown}, not the approved one, ${host_key}.`,
      {
        shown,
        hint: "Compare it with the server's own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then send it as host_key.",
      },
    )
  if ((error as { level?: string }).level === 'client-authentication')
    return new ClusterError('denied', `${address} refused the login of ${user}.`, {
      hint: 'Add the public key to ~/.ssh/authorized_keys of that user.',
    })
  const message = error instanceof OutboundError ? error.message : `${address} does not answer over SSH.`
  return new ClusterError('unreachable', message, {
    cause: error,
    hint: 'Check its address, its SSH port and its firewall.',
  })
}

/** Logs in; the server must show the key that was approved before anything is said to it. */
export async function connectSsh(dial: Dial, target: NodeTarget, signal?: AbortSignal): Promise<Ssh> {
  const { Client: SshClient, utils } = await loadSsh()
  if (utils.parseKey(target.private_key) instanceof Error)
    throw new ClusterError('denied', 'The private key cannot be read. It must have no passphrase.')
  const socket = await dial(target.address, target.port, {
    timeout_ms: CONNECT_MS,
    ...(signal ? { signal } : {}),
  }).catch((error: unknown) => {
    throw explain(error, target, '')
  })
  socket.setNoDelay(true)
  const client = new SshClient()
  let shown = ''
  const closed = new Promise<void>((resolve) => {
    client.once('close', () => resolve())
    socket.once('close', () => resolve())
  })
  try {
    await new Promise<void>((resolve, reject) => {
      signal?.addEventListener(
        'abort',
        () => reject(new ClusterError('unreachable', 'The request was cancelled.')),
        {
          once: true,
        },
      )
      client
        .once('ready', () => resolve())
        .on('error', reject)
        .once('close', () => reject(new Error('closed')))
        .connect({
          sock: socket,
          username: target.user,
          privateKey: target.private_key,
          readyTimeout: CONNECT_MS,
          keepaliveInterval: KEEPALIVE_MS,
          keepaliveCountMax: KEEPALIVES,
          hostVerifier: (key: Buffer) => {
            shown = sshFingerprint(key)
            return shown === target.host_key
          },
        })
    })
  } catch (error) {
    client.end()
    socket.destroy()
    throw explain(error, target, shown)
  }
  return sessionOf(client, { host_key: shown, address: socket.remoteAddress ?? target.address, closed })
}

function sessionOf(client: Client, known: Pick<Ssh, 'host_key' | 'address' | 'closed'>): Ssh {
  /** A request that was sent just before the connection broke is never answered. */
  const orClosed = <T>(work: (done: (error: Error | undefined, value: T) => void) => void): Promise<T> =>
    Promise.race([
      new Promise<T>((resolve, reject) => work((error, value) => (error ? reject(error) : resolve(value)))),
      known.closed.then(() => {
        throw Object.assign(new Error('the SSH connection is closed'), { code: 'ECONNRESET' })
      }),
    ])
  return {
    ...known,
    exec: (argv) =>
      openedWithin(
        orClosed<ClientChannel>((done) => client.exec(quoteCommand(argv), done)),
        OPEN_MS,
      ),
    openSocket: (path) =>
      openedWithin(
        orClosed<Duplex>((done) => client.openssh_forwardOutStreamLocal(path, done as never)),
        OPEN_MS,
      ),
    close() {
      client.end()
      client.destroy()
    },
  }
}
