import { own } from '#server/kernel/own'
import { randomUUID } from 'node:crypto'
import {
  type handleUnaryCall,
  type Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  status,
  type UntypedHandleCall,
} from '@grpc/grpc-js'
import type { Connection } from '../connection.ts'
import type { BuildSpec } from '../engine.ts'
import {
  type Codec,
  credentialsRequestCodec,
  credentialsResponseCodec,
  healthRequestCodec,
  healthResponseCodec,
  type Packet,
  packetCodec,
  secretRequestCodec,
  secretResponseCodec,
} from './wire.ts'
import {
  contextSource,
  emptySource,
  sendFiles,
  type SyncCall,
  type SyncSource,
  textSource,
} from './file-sync.ts'

export const DOCKERFILE_NAME = 'Dockerfile'

const method = <Q, A>(path: string, request: Codec<Q>, response: Codec<A>, streams: boolean) => ({
  path,
  requestStream: streams,
  responseStream: streams,
  requestSerialize: request.encode,
  requestDeserialize: request.decode,
  responseSerialize: response.encode,
  responseDeserialize: response.decode,
})
const SYNC = {
  DiffCopy: method<Packet, Packet>('/moby.filesync.v1.FileSync/DiffCopy', packetCodec, packetCodec, true),
}
const AUTH = {
  Credentials: method(
    '/moby.filesync.v1.Auth/Credentials',
    credentialsRequestCodec,
    credentialsResponseCodec,
    false,
  ),
}
const SECRETS = {
  GetSecret: method(
    '/moby.buildkit.secrets.v1.Secrets/GetSecret',
    secretRequestCodec,
    secretResponseCodec,
    false,
  ),
}
const HEALTH = {
  Check: method('/grpc.health.v1.Health/Check', healthRequestCodec, healthResponseCodec, false),
}
const SERVING = 1

/** What the builder may ask us for during one build. */
export interface BuildSession {
  readonly id: string
  close(): void
}

/**
 * Opens the channel over which BuildKit fetches the context, the Dockerfile, secrets and registry
 * credentials. The Dockerfile travels beside the context, so that `COPY . .` never puts ours into an image.
 * Every session has its own sharing key: with a common one the builder would take a file of another build for
 * the same when its size and time are equal.
 */
export async function openBuildSession(
  connection: Connection,
  spec: BuildSpec,
  signal: AbortSignal,
): Promise<BuildSession> {
  const id = randomUUID()
  const socket = await connection.hijack(
    '/session',
    {
      Upgrade: 'h2c',
      'X-Docker-Expose-Session-Uuid': id,
      'X-Docker-Expose-Session-Name': 'portreeve',
      'X-Docker-Expose-Session-Sharedkey': randomUUID(),
      'X-Docker-Expose-Session-Grpc-Method': [
        SYNC.DiffCopy.path,
        AUTH.Credentials.path,
        SECRETS.GetSecret.path,
      ],
    },
    signal,
  )
  const server = new Server({ 'grpc.max_receive_message_length': 16 * 1024 * 1024 })
  server.addService(SYNC, {
    DiffCopy: (call: ServerDuplexStream<Packet, Packet>) => void sync(call, spec),
  })
  server.addService(AUTH, { Credentials: credentials(spec) as UntypedHandleCall })
  server.addService(SECRETS, { GetSecret: secret(spec) as UntypedHandleCall })
  // The builder asks every second whether we are still there, and gives the build up when it gets no answer.
  server.addService(HEALTH, {
    Check: ((_call, answer) => answer(null, { status: SERVING })) as handleUnaryCall<
      unknown,
      { status: number }
    > as UntypedHandleCall,
  })
  socket.on('error', () => {})
  server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(socket)
  return {
    id,
    close() {
      server.forceShutdown()
      socket.destroy()
    },
  }
}

async function sync(call: ServerDuplexStream<Packet, Packet>, spec: BuildSpec): Promise<void> {
  call.on('error', () => {})
  try {
    await sendFiles(call as unknown as SyncCall, sourceFor(call.metadata, spec))
  } catch (error) {
    call.emit('error', {
      code: status.INTERNAL,
      details: error instanceof Error ? error.message : 'the build context could not be read',
    })
  }
}

/**
 * The builder asks for a folder by name. It first looks for ignore rules alone; we apply them ourselves, so
 * it gets none.
 */
function sourceFor(metadata: Metadata, spec: BuildSpec): SyncSource {
  const all = (key: string) => metadata.get(key).map(String)
  const [folder] = all('dir-name')
  if (folder === 'dockerfile') return textSource(DOCKERFILE_NAME, spec.dockerfile)
  if (folder !== 'context') throw new Error('the builder asked for a folder that is not part of the build')
  const desired = [...all('followpaths'), ...all('include-patterns')]
  if (desired.length > 0 && desired.every((path) => path.endsWith('.dockerignore'))) return emptySource
  return contextSource(spec.context)
}

const credentials =
  (spec: BuildSpec): handleUnaryCall<{ Host?: string }, { Username: string; Secret: string }> =>
  (call, answer) => {
    const known = spec.registries?.find(({ server }) => sameRegistry(server, call.request.Host ?? ''))
    answer(null, { Username: known?.username ?? '', Secret: known?.password ?? '' })
  }

const secret =
  (spec: BuildSpec): handleUnaryCall<{ ID?: string }, { data: Buffer }> =>
  (call, answer) => {
    const id = call.request.ID ?? ''
    const value = own(spec.secrets, id)
    if (value === undefined) answer({ code: status.NOT_FOUND, details: `secret ${id} not found` })
    else answer(null, { data: Buffer.from(value) })
  }

/** Docker Hub has several names. */
function sameRegistry(server: string, host: string): boolean {
  const plain = (name: string) =>
    name
      .replace(/^https?:\/\//, '')
      .replace(/\/.*$/, '')
      .replace(/^(index|registry-1)\.docker\.io$/, 'docker.io')
      .toLowerCase()
  return plain(server) === plain(host)
}
