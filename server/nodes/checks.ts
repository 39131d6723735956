import type { NodeFacts } from '#server/platform/cluster/cluster'

const GIB = 1024 ** 3
const DISK_LEAST = 5 * GIB
/** Of a machine that is sold with 512 MiB, the kernel keeps some for itself. */
const MEMORY_LEAST = 400 * 1024 ** 2
/** Certificates of the cluster and times of logs do not bear more. */
const CLOCK_MOST_MS = 5000

/** What speaks against a server, each in a sentence under the name of the check. */
export function unsuitedBy(
  facts: NodeFacts,
  { machine, is_member, user }: { machine: string; is_member: boolean; user: string },
): { path: string; message: string }[] {
  const { clock_offset_ms, taken_ports } = facts
  const seconds = Math.round(Math.abs(clock_offset_ms) / 1000)
  const checks: readonly [path: string, is_bad: boolean, message: string][] = [
    [
      'os',
      !facts.can_install && facts.engine_version === undefined,
      `It runs ${facts.os}, where Portreeve cannot install a container engine. Use Debian or Ubuntu, or install the engine there.`,
    ],
    [
      'machine',
      facts.machine !== machine,
      `Its processor is ${facts.machine}, and images that are built here are for ${machine}.`,
    ],
    [
      'disk',
      facts.disk_free_bytes < DISK_LEAST,
      `${(facts.disk_free_bytes / GIB).toFixed(1)} GiB of its disk are free, and ${DISK_LEAST / GIB} GiB are needed.`,
    ],
    [
      'memory',
      facts.memory_bytes < MEMORY_LEAST,
      `It has ${Math.floor(facts.memory_bytes / 1024 ** 2)} MiB of memory, and 512 MiB are needed.`,
    ],
    [
      'clock',
      Math.abs(clock_offset_ms) > CLOCK_MOST_MS,
      `Its clock is ${seconds} s ${clock_offset_ms > 0 ? 'ahead of' : 'behind'} that of this server. Have both set by NTP.`,
    ],
    [
      'ports',
      taken_ports.length > 0 && !is_member,
      `Something there uses ${taken_ports.length > 1 ? 'the ports' : 'the port'} ${taken_ports.join(' and ')}, which the cluster needs.`,
    ],
    [
      'user',
      !facts.is_root,
      `The user ${user} cannot become root without a password. Log in as root, or allow sudo without one.`,
    ],
    [
      'cluster',
      facts.in_cluster && !is_member,
      'It is part of another cluster. Take it out there first, with `docker swarm leave`.',
    ],
    ['portreeve', facts.has_portreeve, 'A Portreeve of its own runs on it, which a member must not have.'],
  ]
  return checks.flatMap(([path, is_bad, message]) => (is_bad ? [{ path, message }] : []))
}
