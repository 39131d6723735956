import type { StatsFs } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'
import { cpus, loadavg, totalmem } from 'node:os'

/** What the server itself uses now. Counters of bytes only ever grow. */
export interface HostReading {
  /** Milliseconds that all processors together worked since the start. */
  cpu_busy_ms: number
  memory_used_bytes: number
  memory_total_bytes: number
  disk_used_bytes: number
  disk_total_bytes: number
  net_in_bytes: number
  net_out_bytes: number
  load_1m: number
}

/** Interfaces of containers and of the machine itself, whose bytes would count twice. */
const INNER = /^(lo|docker|br-|veth|cni|flannel|ifb|dummy|tun|tap)/

/** Adds up the bytes of the interfaces that lead outside. Source: proc(5), `/proc/net/dev`. */
export function readNetwork(text: string): { net_in_bytes: number; net_out_bytes: number } {
  let net_in_bytes = 0
  let net_out_bytes = 0
  for (const line of text.split('\n').slice(2)) {
    const [name, rest] = line.trim().split(/:\s*/)
    if (!name || !rest || INNER.test(name)) continue
    const fields = rest.split(/\s+/).map(Number)
    net_in_bytes += fields[0] ?? 0
    net_out_bytes += fields[8] ?? 0
  }
  return { net_in_bytes, net_out_bytes }
}

/** Memory that programs can still get, caches included. Source: proc(5), `/proc/meminfo`. */
export const readAvailable = (text: string): number | undefined => {
  const match = /^MemAvailable:\s+(\d+) kB/m.exec(text)
  return match ? Number(match[1]) * 1024 : undefined
}

/**
 * What is used, and what could be: what the file system keeps for the administrator is neither. Its share is the one that
 * `df` tells: a disk from which nobody can have anything more is full, however much is kept.
 */
export const readDisk = ({
  blocks,
  bfree,
  bavail,
  bsize,
}: Pick<StatsFs, 'blocks' | 'bfree' | 'bavail' | 'bsize'>) => ({
  disk_used_bytes: (blocks - bfree) * bsize,
  disk_total_bytes: (blocks - bfree + bavail) * bsize,
})

/** @param directory on the disk that is watched. */
export async function readHost(directory: string): Promise<HostReading> {
  const [memory, network, disk] = await Promise.all([
    readFile('/proc/meminfo', 'utf8').catch(() => ''),
    readFile('/proc/net/dev', 'utf8').catch(() => ''),
    statfs(directory),
  ])
  const total = totalmem()
  const busy = cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq)
  return {
    cpu_busy_ms: busy.reduce((sum, ms) => sum + ms, 0),
    memory_used_bytes: total - (readAvailable(memory) ?? total),
    memory_total_bytes: total,
    ...readDisk(disk),
    load_1m: loadavg()[0]!,
    ...readNetwork(network),
  }
}
