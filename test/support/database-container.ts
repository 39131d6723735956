import { PassThrough, type Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type Docker from 'dockerode'
import type { ContainerCommand, Credentials, DatabaseEngine } from '#server/databases/engine'
import { CAPABILITIES } from '#server/platform/engine/workload'
import { testDocker } from './engine-images.ts'
import { poll } from './poll.ts'

export interface CommandEnd {
  exit_code: number
  stdout: Buffer
  stderr: string
}

/** One server of a database engine in a container of its own, as its descriptor describes it; no platform around. */
export interface DatabaseContainer {
  container: Docker.Container
  /** Runs a command of the descriptor in it; what it reads is the command's own, or these bytes. */
  run(command: ContainerCommand, stdin?: Buffer): Promise<CommandEnd>
  /** The same, but anything other than success throws. */
  must(command: ContainerCommand, stdin?: Buffer): Promise<string>
  untilReady(): Promise<void>
  dispose(): Promise<void>
}

const asText = (stream: PassThrough) => text(stream)

async function exec(
  container: Docker.Container,
  command: ContainerCommand,
  stdin?: Buffer,
): Promise<CommandEnd> {
  const input = stdin ?? (command.stdin === undefined ? undefined : Buffer.from(command.stdin))
  const run = await container.exec({
    Cmd: [...command.argv],
    Env: Object.entries(command.env).map(([name, value]) => `${name}=${value}`),
    AttachStdin: input !== undefined,
    AttachStdout: true,
    AttachStderr: true,
  })
  const stream = await run.start({ hijack: true, stdin: input !== undefined })
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  container.modem.demuxStream(stream, stdout, stderr)
  const ended = new Promise<void>((resolve) => stream.once('end', resolve).once('close', resolve))
  void ended.then(() => [stdout, stderr].forEach((one: Writable) => one.end()))
  const chunks: Buffer[] = []
  stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  const errors = asText(stderr)
  if (input !== undefined) stream.end(input)
  await ended
  let exit_code: number | null = null
  await poll(async () => (exit_code = (await run.inspect()).ExitCode) !== null)
  return { exit_code: exit_code!, stdout: Buffer.concat(chunks), stderr: await errors }
}

/** Starts a server on a volume; with `volume`, on one that is there already. */
export async function startDatabaseContainer(
  engine: DatabaseEngine,
  credentials: Credentials,
  options: { line?: string; volume: string; command?: readonly string[] },
): Promise<DatabaseContainer> {
  const command = options.command ?? engine.command?.(false)
  const container = await testDocker().createContainer({
    Image: `${engine.image}:${options.line ?? engine.lines[0]}`,
    Env: Object.entries({
      ...engine.environment(credentials),
      ...engine.first_environment?.(options.line ?? engine.lines[0]!),
    }).map(([name, value]) => `${name}=${value}`),
    ...(command ? { Cmd: [...command] } : {}),
    Labels: { 'portreeve-test.database': options.volume },
    HostConfig: {
      Memory: engine.least_memory_bytes * 2,
      CapDrop: ['ALL'],
      CapAdd: [...CAPABILITIES],
      SecurityOpt: ['no-new-privileges'],
      Init: true,
      Mounts: [{ Type: 'volume', Source: options.volume, Target: engine.volume_path }],
    },
  })
  await container.start()
  const run: DatabaseContainer['run'] = (command, stdin) => exec(container, command, stdin)
  return {
    container,
    run,
    async must(command, stdin) {
      const end = await run(command, stdin)
      if (end.exit_code !== 0)
        throw new Error(
          `${command.argv[0]} ended with ${end.exit_code}: ${end.stderr}${end.stdout.toString()}`,
        )
      return end.stdout.toString()
    },
    untilReady: () => poll(async () => (await run(engine.probe(credentials))).exit_code === 0),
    dispose: () => container.remove({ force: true, v: true }),
  }
}
