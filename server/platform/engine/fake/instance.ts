import { createServer, type Server } from 'node:http'
import { randomBytes } from 'node:crypto'
import type { FakeBehaviour } from './behaviour.ts'
import { createChannel, type Channel } from './channel.ts'
import type { Instance, LogLine } from '../engine.ts'
import { type ContainerSpec, LOCAL, MAIN_PROCESS, type Workload } from '../workload.ts'

/**
 * A pretended container: its record, its log and, when it listens, a real HTTP server on a loopback address
 * of its own.
 */
export interface FakeInstance {
  readonly record: Instance
  readonly spec: ContainerSpec & Partial<Pick<Workload, 'probe'>>
  readonly log: LogLine[]
  readonly followers: Set<Channel<LogLine>>
  supervised: boolean
  server?: Server
  timers: NodeJS.Timeout[]
}

let next_address = randomBytes(2).readUInt16BE()

/**
 * The next loopback address. All of 127.0.0.0/8 is local on Linux, so every instance can listen on the port
 * that its app asks for, as it would in a network of its own.
 */
function nextAddress(): string {
  next_address = (next_address + 1) % 0xfffff
  const process_octet = 64 + (process.pid % 64)
  return `127.${process_octet}.${(next_address >> 8) & 0xff}.${1 + (next_address % 253)}`
}

/** A created, not yet started instance. */
export function createFakeInstance(
  spec: FakeInstance['spec'],
  index: number,
  image_id: string,
): FakeInstance {
  return {
    record: {
      id: randomBytes(32).toString('hex'),
      owner: spec.owner,
      release_id: spec.release_id,
      project_id: spec.project_id,
      process: spec.process ?? MAIN_PROCESS,
      index,
      image: image_id,
      ...(spec.placement && spec.placement.node !== LOCAL ? { node: spec.placement.node } : {}),
      state: 'created',
      oom_killed: false,
      restart_count: 0,
      limits: { cpus: spec.limits.cpus, memory_bytes: spec.limits.memory_bytes },
    },
    spec,
    log: [],
    followers: new Set(),
    supervised: false,
    timers: [],
  }
}

/** Adds a line to the instance's log and tells those who follow it. */
export function printLine(instance: FakeInstance, text: string, stream: LogLine['stream'] = 'stdout'): void {
  const line: LogLine = { at: new Date().toISOString(), stream, text }
  instance.log.push(line)
  for (const follower of instance.followers) follower.push(line)
}

/**
 * Opens the instance's HTTP server on the port in `PORT`, the image's first exposed port, that of a probe over
 * TCP, or 3000.
 */
export async function openServer(instance: FakeInstance, behaviour: FakeBehaviour): Promise<void> {
  const { environment, probe } = instance.spec
  const probed = probe?.type === 'tcp' ? probe.port : undefined
  const port = Number(environment.PORT ?? behaviour.exposed_ports?.[0] ?? probed ?? 3000)
  const server = createServer((request, response) => {
    if (behaviour.respond) return behaviour.respond(request, response, instance.record)
    response.setHeader('content-type', 'application/json')
    response.setHeader('x-release', instance.record.release_id)
    response.end(
      JSON.stringify({
        release_id: instance.record.release_id,
        index: instance.record.index,
        path: request.url,
      }),
    )
  })
  for (let attempt = 0; ; attempt++) {
    const address = instance.record.address ?? nextAddress()
    const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
      server.once('error', resolve)
      server.listen(port, address, () => resolve(undefined))
    })
    if (!error) {
      instance.record.address = address
      instance.server = server
      return
    }
    if (error.code !== 'EADDRINUSE' || instance.record.address || attempt > 50) throw error
  }
}

/** An address on which nothing listens, for an instance that never becomes ready. */
export function assignAddress(instance: FakeInstance): void {
  instance.record.address ??= nextAddress()
}

/** Closes the server with its connections and stops the instance's timers. */
export function silence(instance: FakeInstance): void {
  for (const timer of instance.timers.splice(0)) clearTimeout(timer)
  instance.server?.close()
  instance.server?.closeAllConnections()
  instance.server = undefined
}

/** Ends every follower of the log, as the removal of a container does. */
export function endFollowers(instance: FakeInstance): void {
  for (const follower of instance.followers) follower.end()
  instance.followers.clear()
}

/** A channel that receives the lines printed from now on. */
export function followLog(instance: FakeInstance): Channel<LogLine> {
  const follower: Channel<LogLine> = createChannel<LogLine>(1000, () => instance.followers.delete(follower))
  instance.followers.add(follower)
  return follower
}
