import { createHash } from 'node:crypto'
import { PassThrough } from 'node:stream'
import type Docker from 'dockerode'
import { IngressError } from './ingress.ts'

/** The edge's container. It has the network of the machine and one folder of it, and can change nothing else. */
export interface EdgeContainer {
  readonly name: string
  /** Makes sure that the container exists as it should and runs; true when it was started by this call. */
  start(beforeStart: () => Promise<void>, signal?: AbortSignal): Promise<boolean>
  state(): Promise<{ exists: boolean; running: boolean; restarting: boolean }>
  /** What the edge printed last. */
  lastWords(): Promise<string>
  /** Asks the edge whether it would load these files, given by their paths in its folder. Returns its complaint, nothing when they are fine. */
  check(paths: string[]): Promise<string | undefined>
  /** Stops and starts it anew, for an edge that runs and does not answer. */
  restart(): Promise<void>
  remove(): Promise<void>
}
export interface EdgeContainerOptions {
  docker: Docker
  /** The edge's folder on this machine; it decides the container's name, so that installations side by side keep apart. */
  directory: string
  image: string
  /** The user that Portreeve runs as: the owner of the runtime socket. */
  owner_uid: number
}

/** The folder of an installation names its edge. */
export const edgeHash = (directory: string): string => createHash('sha256').update(directory).digest('hex').slice(0, 12)

export function createEdgeContainer({ docker, directory, image, owner_uid }: EdgeContainerOptions): EdgeContainer {
  const hash = edgeHash(directory)
  const name = `portreeve-edge-${hash}`
  const wanted = describeContainer(name, hash, directory, image, owner_uid)
  const specification = createHash('sha256').update(JSON.stringify(wanted)).digest('hex').slice(0, 16)
  const container = docker.getContainer(name)

  async function find(): Promise<Docker.ContainerInspectInfo | undefined> {
    try {
      return await container.inspect()
    } catch (error) {
      if (statusOf(error) === 404) return undefined
      throw new IngressError('The container engine does not answer, so the edge cannot be checked.', { cause: error })
    }
  }

  async function create(): Promise<void> {
    try {
      await docker.createContainer({ ...wanted, Labels: { ...wanted.Labels, 'portreeve.edge.specification': specification } })
    } catch (error) {
      if (statusOf(error) === 409) return
      if (statusOf(error) === 404) throw new IngressError(`The image ${image} of the edge is missing; run \`npm run images\` or pull it, then try again.`, { cause: error })
      throw new IngressError('The container engine refused to create the edge.', { cause: error })
    }
  }

  return {
    name,
    async start(beforeStart, signal) {
      let known = await find()
      if (known && known.Config.Labels['portreeve.edge.specification'] !== specification) {
        await container.remove({ force: true })
        known = undefined
      }
      if (known?.State.Running && !known.State.Restarting) return false
      signal?.throwIfAborted()
      await beforeStart()
      if (!known) await create()
      try {
        await container.start()
      } catch (error) {
        if (statusOf(error) !== 304) throw new IngressError('The container engine could not start the edge.', { cause: error })
      }
      return true
    },
    async state() {
      const known = await find()
      return { exists: known !== undefined, running: known?.State.Running ?? false, restarting: known?.State.Restarting ?? false }
    },
    async lastWords() {
      const output = await container.logs({ stdout: true, stderr: true, tail: 20 }).catch(() => Buffer.alloc(0))
      return stripFrames(output)
    },
    async check(paths) {
      const exec = await container.exec({ Cmd: ['haproxy', '-c', '-V', ...paths.flatMap((path) => ['-f', `/edge/${path}`])], AttachStdout: true, AttachStderr: true })
      const stream = await exec.start({})
      const output: Buffer[] = []
      const sink = new PassThrough().on('data', (chunk: Buffer) => output.push(chunk))
      docker.modem.demuxStream(stream, sink, sink)
      await new Promise((resolve, reject) => stream.once('end', resolve).once('error', reject))
      // The stream may end a moment before the engine knows how the command ended.
      let ended = await exec.inspect()
      while (ended.Running) ended = await exec.inspect()
      return ended.ExitCode === 0 ? undefined : Buffer.concat(output).toString('utf8') || `the check ended with code ${ended.ExitCode}.`
    },
    async restart() {
      await container.restart({ t: 1 })
    },
    async remove() {
      await container.remove({ force: true }).catch((error: unknown) => {
        if (statusOf(error) !== 404) throw error
      })
    },
  }
}

/**
 * Fixed fields only. Root is needed to listen on port 80 and to hand its workers to an unprivileged user; of root's powers
 * it keeps those six. The engine starts it again after a crash or a reboot, with or without Portreeve.
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

function statusOf(error: unknown): number | undefined {
  return (error as { statusCode?: number }).statusCode
}

/** The engine frames each piece of output with eight bytes. */
function stripFrames(output: Buffer): string {
  let text = ''
  for (let at = 0; at + 8 <= output.length;) {
    const size = output.readUInt32BE(at + 4)
    text += output.toString('utf8', at + 8, at + 8 + size)
    at += 8 + size
  }
  return text
}
