import { existsSync } from 'node:fs'
import type { NodeReading } from '#server/platform/cluster/cluster'
import type { HostReading } from '#server/platform/host/reading'
import type { NodeHealth } from './schema.ts'

type Checks = NodeHealth['checks']

/** From here on a disk counts as full. Source: api.md "Monitoring". */
const DISK_FULL = 0.85
/** Below this share of the memory the kernel begins to end programs. */
const MEMORY_LEAST = 0.05
/** How far the clocks of two servers may be apart. */
const CLOCK_MOST_MS = 5000
/** What systemd's time service writes once the clock was set. Source: systemd-timesyncd.service(8). */
const SYNCHRONISED = '/run/systemd/timesync/synchronized'

const percent = (share: number): string => `${Math.round(share * 100)} %`

type Used = Pick<
  HostReading,
  'disk_used_bytes' | 'disk_total_bytes' | 'memory_used_bytes' | 'memory_total_bytes'
>
function usage(reading: Used): Pick<Required<Checks>, 'disk' | 'memory'> {
  const disk = reading.disk_used_bytes / reading.disk_total_bytes
  const memory = reading.memory_used_bytes / reading.memory_total_bytes
  return {
    disk: { ok: disk <= DISK_FULL, message: `The disk is ${percent(disk)} full.` },
    memory: { ok: memory <= 1 - MEMORY_LEAST, message: `${percent(memory)} of the memory is in use.` },
  }
}
const engineAnswers = (version: string) => ({
  ok: true,
  message: `The container engine ${version} answers.`,
})

/** What there is to say of this server: its readings, and whether its engine answers. */
export function checkNode(reading: HostReading, engine_version: string | undefined): Checks {
  const is_set = existsSync(SYNCHRONISED)
  return {
    engine: engine_version
      ? engineAnswers(engine_version)
      : { ok: false, message: 'The container engine does not answer.' },
    ...usage(reading),
    clock: is_set
      ? { ok: true, message: 'The clock is synchronised.' }
      : { ok: null, message: 'The server does not say whether its clock is synchronised.' },
    reachability: { ok: true, message: 'This is the server that answers this request.' },
  }
}

/** What there is to say of another server, as it answered just now; `reason` is why it did not. */
export function checkMember(
  reading: NodeReading | undefined,
  reason = 'The server does not answer.',
): Checks {
  if (!reading) {
    const unknown = { ok: null, message: 'This is not known while the server does not answer.' }
    return {
      ...{ engine: unknown, disk: unknown, memory: unknown, clock: unknown },
      reachability: { ok: false, message: reason },
    }
  }
  const off_ms = Math.round(Math.abs(reading.clock_offset_ms))
  return {
    engine:
      reading.in_cluster === false
        ? { ok: false, message: 'The container engine answers, and is in the cluster no longer.' }
        : engineAnswers(reading.engine.version),
    ...usage(reading),
    clock: {
      ok: off_ms <= CLOCK_MOST_MS,
      message: `Its clock is ${off_ms} ms ${reading.clock_offset_ms < 0 ? 'behind' : 'ahead of'} that of this server.`,
    },
    reachability: { ok: true, message: 'The server answers.' },
  }
}
