import { existsSync } from 'node:fs'
import type { HostReading } from '#server/platform/host/reading'
import type { NodeHealth } from './schema.ts'

type Checks = NodeHealth['checks']

/** From here on a disk counts as full. Source: api.md "Monitoring". */
const DISK_FULL = 0.85
/** Below this share of the memory the kernel begins to end programs. */
const MEMORY_LEAST = 0.05
/** What systemd's time service writes once the clock was set. Source: systemd-timesyncd.service(8). */
const SYNCHRONISED = '/run/systemd/timesync/synchronized'

const percent = (share: number): string => `${Math.round(share * 100)} %`

/** What there is to say of a server: its readings, and whether its engine answers. */
export function checkNode(reading: HostReading, engine_version: string | undefined): Checks {
  const disk = reading.disk_used_bytes / reading.disk_total_bytes
  const memory = reading.memory_used_bytes / reading.memory_total_bytes
  const is_set = existsSync(SYNCHRONISED)
  return {
    engine: engine_version
      ? { ok: true, message: `The container engine ${engine_version} answers.` }
      : { ok: false, message: 'The container engine does not answer.' },
    disk: { ok: disk <= DISK_FULL, message: `The disk is ${percent(disk)} full.` },
    memory: { ok: memory <= 1 - MEMORY_LEAST, message: `${percent(memory)} of the memory is in use.` },
    clock: is_set
      ? { ok: true, message: 'The clock is synchronised.' }
      : { ok: null, message: 'The server does not say whether its clock is synchronised.' },
    reachability: { ok: true, message: 'This is the server that answers this request.' },
  }
}
