import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { CallOptions, Connection } from '#server/platform/engine/connection'
import type { EngineError } from '#server/platform/engine/engine'
import { edgeHash, edgeName } from '../edge-name.ts'
import { IngressError } from '../ingress.ts'

/**
 * The edge's container. It has the network of the machine and one folder of it, and can change nothing else.
 */
export interface EdgeContainer {
  readonly name: string
  /** Makes sure that the container exists as it should and runs; true when it was started by this call. */
  start(beforeStart: () => Promise<void>, signal?: AbortSignal): Promise<boolean>
  state(): Promise<{ exists: boolean; running: boolean; restarting: boolean }>
  /** What the edge printed last. */
  lastWords(): Promise<string>
  /**
   * Asks the edge whether it would load these files, given by their paths in its folder. Returns its
   * complaint, nothing when they are fine.
   */
  check(paths: string[]): Promise<string | undefined>
  /** Stops and starts it anew, for an edge that runs and does not answer. */
  restart(): Promise<void>
  remove(): Promise<void>
}
export interface EdgeContainerOptions {
  engine: Connection
  /**
   * The edge's folder on this machine; it decides the container's name, so that installations side by side
   * keep apart.
   */
  directory: string
  image: string
  /** The user that Portreeve runs as: the owner of the runtime socket. */
  owner_uid: number
}

interface InspectedContainer {
  Config: { Labels: Record<string, string> }
  State: { Running: boolean; Restarting: boolean }
}

/** The engine may be slow under load, when the edge must still be brought up. */
const DEADLINE_MS = 60_000

export function createEdgeContainer({
  engine,
  directory,
  image,
  owner_uid,
}: EdgeContainerOptions): EdgeContainer {
  const hash = edgeHash(directory)
  const name = edgeName(directory)
  const desired = describeContainer(name, hash, directory, image, owner_uid)
  const specification = createHash('sha256').update(JSON.stringify(desired)).digest('hex').slice(0, 16)
  const call = <T>(method: 'GET' | 'POST' | 'DELETE', verb = '', options: Partial<CallOptions> = {}) =>
    engine.call<T>({
      method,
      path: `/containers/${name}${verb}`,
      deadline_ms: DEADLINE_MS,
      ...options,
    })

  async function find(): Promise<InspectedContainer | undefined> {
    try {
      return await call<InspectedContainer | undefined>('GET', '/json', { accept: [404] })
    } catch (error) {
      throw new IngressError('The container engine does not answer, so the edge cannot be checked.', {
        cause: error,
      })
    }
  }

  async function create(): Promise<void> {
    const body = {
      ...desired,
      Labels: { ...desired.Labels, 'portreeve.edge.specification': specification },
      // Not part of the specification: an edge of before runs on, and where containers have users of their own, none
      // with the network of the machine can be made without it.
      HostConfig: { ...desired.HostConfig, UsernsMode: 'host' },
    }
    try {
      await engine.call({
        method: 'POST',
        path: '/containers/create',
        query: { name },
        body,
        accept: [409],
        deadline_ms: DEADLINE_MS,
      })
    } catch (error) {
      if ((error as EngineError).code === 'not_found')
        throw new IngressError(
          `The image ${image} of the edge is missing; run \`npm run images\` or pull it, then try again.`,
          { cause: error },
        )
      throw new IngressError('The container engine refused to create the edge.', { cause: error })
    }
  }

  const remove = () => call('DELETE', '', { query: { force: true }, accept: [404] })

  return {
    name,
    async start(beforeStart, signal) {
      let known = await find()
      if (known && known.Config.Labels['portreeve.edge.specification'] !== specification) {
        await remove()
        known = undefined
      }
      if (known?.State.Running && !known.State.Restarting) return false
      signal?.throwIfAborted()
      await beforeStart()
      if (!known) await create()
      try {
        await call('POST', '/start')
      } catch (error) {
        throw new IngressError('The container engine could not start the edge.', { cause: error })
      }
      return true
    },
    async state() {
      const known = await find()
      return {
        exists: known !== undefined,
        running: known?.State.Running ?? false,
        restarting: known?.State.Restarting ?? false,
      }
    },
    async lastWords() {
      const query = { stdout: true, stderr: true, tail: 20 }
      return withoutFrames(
        await engine.stream({ path: `/containers/${name}/logs`, query }).then(bytesOf, () => Buffer.alloc(0)),
      )
    },
    async check(paths) {
      const Cmd = ['haproxy', '-c', '-V', ...paths.flatMap((path) => ['-f', `/edge/${path}`])]
      const { Id } = await call<{ Id: string }>('POST', '/exec', {
        body: { Cmd, AttachStdout: true, AttachStderr: true },
      })
      const output = withoutFrames(
        await bytesOf(
          await engine.stream({
            method: 'POST',
            path: `/exec/${Id}/start`,
            body: { Detach: false, Tty: false },
            deadline_ms: DEADLINE_MS,
          }),
        ),
      )
      // The stream may end a moment before the engine knows how the command ended.
      for (;;) {
        const ended = await engine.call<{ Running: boolean; ExitCode: number }>({
          path: `/exec/${Id}/json`,
        })
        if (!ended.Running)
          return ended.ExitCode === 0 ? undefined : output || `the check ended with code ${ended.ExitCode}.`
      }
    },
    async restart() {
      await call('POST', '/restart', { query: { t: 1 } })
    },
    async remove() {
      await remove()
    },
  }
}

/**
 * Fixed fields only. Root is needed to listen on port 80 and to hand its workers to an unprivileged user; of
 * root's powers it keeps those six. The engine starts it again after a crash or a reboot, with or without
 * Portreeve.
 */
function describeContainer(name: string, hash: string, directory: string, image: string, owner_uid: number) {
  const owner = owner_uid === 0 ? ',mode,600' : `,uid,${owner_uid}`
  return {
    name,
    Image: image,
    User: 'root',
    Entrypoint: ['haproxy'],
    Cmd: ['-W', '-db', '-S', `/edge/run/master.sock${owner}`, '-f', '/edge/config'],
    Labels: { 'portreeve.managed': 'true', 'portreeve.edge': hash },
    StopSignal: 'SIGTERM',
    HostConfig: {
      NetworkMode: 'host',
      RestartPolicy: { Name: 'always' },
      Binds: [`${directory}:/edge`],
      Tmpfs: { '/run/portreeve': 'mode=0711,size=1m' },
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      CapAdd: ['NET_BIND_SERVICE', 'SETUID', 'SETGID', 'CHOWN', 'DAC_OVERRIDE', 'KILL'],
      SecurityOpt: ['no-new-privileges'],
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
    },
  }
}

async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The engine frames each piece of output with eight bytes. */
function withoutFrames(output: Buffer): string {
  let text = ''
  for (let at = 0; at + 8 <= output.length; ) {
    const size = output.readUInt32BE(at + 4)
    text += output.toString('utf8', at + 8, at + 8 + size)
    at += 8 + size
  }
  return text
}
