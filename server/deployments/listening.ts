import type { Engine } from '#server/platform/engine/engine'
import { findOpenPort } from './probe.ts'

/** A port that a program inside an instance listens on. */
export interface Listening {
  port: number
  /** Whether only the instance itself reaches it, because it is bound to the loopback address. */
  loopback: boolean
}

const READ_MS = 5_000
/** The kernel's number for a socket that listens. */
const LISTEN = '0A'
/** The resolver that the engine puts into each container. */
const RESOLVER = '0B00007F'
const LOOPBACK = /^(?:[0-9A-F]{6}7F|00000000000000000000000001000000|0000000000000000FFFF0000[0-9A-F]{6}7F)$/

/** Reads the kernel's tables of TCP sockets, `/proc/net/tcp` and `/proc/net/tcp6`. Pure. */
export function parseListening(table: string): Listening[] {
  const ports = new Map<number, boolean>()
  for (const line of table.split('\n').slice(0, 10_000)) {
    const [, address, port, state] =
      /^\s*\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /.exec(line) ??
      []
    if (address === undefined || state !== LISTEN || address === RESOLVER) continue
    const number = Number.parseInt(port!, 16)
    ports.set(number, LOOPBACK.test(address) && (ports.get(number) ?? true))
  }
  return [...ports].map(([port, loopback]) => ({ port, loopback })).sort((a, b) => a.port - b.port)
}

/**
 * What an instance listens on: as its kernel says, or, in an image without any program to read that with, the
 * first usual port that is open.
 * @param exposed ports that the image names.
 */
export async function listeningOf(
  engine: Pick<Engine, 'exec'>,
  instance: { id: string; address?: string },
  exposed: readonly number[],
): Promise<Listening[]> {
  const table = await readTable(engine, instance.id).catch(() => '')
  const found = parseListening(table)
  if (found.length > 0 || !instance.address) return found
  const port = await findOpenPort(instance.address, exposed)
  return port === undefined ? [] : [{ port, loopback: false }]
}

/** More than any table of a program that listens. */
const MOST_BYTES = 1024 ** 2

async function readTable(engine: Pick<Engine, 'exec'>, instance_id: string): Promise<string> {
  const command = ['cat', '/proc/net/tcp', '/proc/net/tcp6']
  const running = await engine.exec(instance_id, { command }, AbortSignal.timeout(READ_MS))
  running.stdin.end()
  // A kernel without IPv6 has no second table, which ends the command with an error.
  const done = running.done.catch(() => undefined)
  const chunks: Buffer[] = []
  let size_bytes = 0
  for await (const chunk of running.stdout) {
    chunks.push(Buffer.from(chunk))
    size_bytes += chunk.length
    // The image brings the command: it may print without end. Leaving the loop ends its stream.
    if (size_bytes > MOST_BYTES) return ''
  }
  await done
  return Buffer.concat(chunks).toString('latin1')
}

const LISTED = 5
const listed = (ports: readonly Listening[]): string =>
  ports
    .slice(0, LISTED)
    .map(({ port, loopback }) => (loopback ? `127.0.0.1:${port}` : String(port)))
    .join(' and ')

/** What was seen instead of the port that was probed, and what to do; undefined where nothing listens at all. */
export function elsewhere(
  listening: readonly Listening[],
  port: number,
): { last: string; hint: string } | undefined {
  if (listening.some((one) => one.port === port && one.loopback))
    return {
      last: `it listens on 127.0.0.1:${port} only, where nobody else reaches it`,
      hint: `Listen on 0.0.0.0 instead of localhost; many frameworks read that from the HOST variable, which is set to 0.0.0.0.`,
    }
  const others = listening.filter((one) => one.port !== port)
  const open = others.find(({ loopback }) => !loopback)
  if (open)
    return {
      last: `it listens on ${listed(others)}, not on ${port}`,
      hint: `Set port to ${open.port}, or listen on the port that the PORT variable names.`,
    }
  return others.length === 0
    ? undefined
    : {
        last: `it listens on ${listed(others)}, where nobody else reaches it, not on ${port}`,
        hint: `Listen on 0.0.0.0 and the port that the PORT variable names.`,
      }
}
