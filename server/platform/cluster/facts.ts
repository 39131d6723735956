import { clampMessage } from '#server/platform/engine/messages'
import type { NodeFacts, NodeReading } from './cluster.ts'
import { DEVICE, VXLAN_PORT } from './tunnel-plan.ts'

const CLUSTER_PORTS = [7946, VXLAN_PORT]

/**
 * The sockets that listen on them, as the kernel lists them: 0A is TCP, 07 is UDP. A busy server
 * has tens of thousands of other sockets, which would be megabytes in each answer.
 */
const HEX_PORTS = CLUSTER_PORTS.map((port) => port.toString(16).toUpperCase()).join('|')
const LISTENING = `: [0-9A-F]+:(${HEX_PORTS}) [0-9A-F]+:[0-9A-F]+ (0A|07) `

/** Programs that only read, for the `sh` of any Linux. What a machine lacks is left empty. */
export const FACTS_SCRIPT = `
echo "clock $(date +%s%N)"
echo "host $(uname -n)"
echo "machine $(uname -m)"
echo "os $(. /etc/os-release 2> /dev/null && echo "$PRETTY_NAME")"
echo "cpus $(getconf _NPROCESSORS_ONLN)"
echo "memory $(sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo)"
echo "available $(sed -n 's/^MemAvailable: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo)"
echo "load $(cut -d ' ' -f 1 /proc/loadavg)"
folder=/var/lib/docker; [ -d "$folder" ] || folder=/var
echo "disk $(df -P -k "$folder" | awk 'NR == 2 { print $2, $3, $4 }')"
echo "uid $(id -u)"
echo "sudo $(sudo -n true > /dev/null 2>&1 && echo yes)"
echo "apt $(command -v apt-get)"
echo "portreeve $([ -e /etc/systemd/system/portreeve.service ] && echo yes)"
echo "tunnel $(ip link show ${DEVICE} > /dev/null 2>&1 && echo yes)"
for file in tcp tcp6 udp udp6; do
  grep -E "${LISTENING}" "/proc/net/$file" 2> /dev/null | sed "s/^/port $file /"
done
echo end
`

const KIB = 1024
/** State of a TCP socket that listens, as the kernel writes it. */
const LISTENS = '0A'

/** What the script printed, and when it was asked and answered here. */
export interface FactsAnswer {
  text: string
  asked_at_ms: number
  answered_at_ms: number
}

/** Every line of the script, by its first word; a server may print before and after it whatever it likes. */
function wordsOf(text: string): { values: Map<string, string>; ports: string[] } {
  const values = new Map<string, string>()
  const ports: string[] = []
  for (const line of text.split('\n')) {
    const [, word = '', value = ''] = /^([a-z]+) ?(.*)$/.exec(line.trim()) ?? []
    if (word === 'port') ports.push(value)
    else if (word && !values.has(word)) values.set(word, value)
  }
  return { values, ports }
}

/** Ports that somebody listens on; a line is `tcp 0: 00000000:1F0A … 0A …`. */
function listened(lines: readonly string[]): Set<number> {
  const found = new Set<number>()
  for (const line of lines) {
    const [file = '', , local = '', , state] = line.trim().split(/\s+/)
    const port = Number.parseInt(local.split(':')[1] ?? '', 16)
    if (Number.isInteger(port) && (file.startsWith('udp') || state === LISTENS)) found.add(port)
  }
  return found
}

/** A number as a machine has of anything: what somebody else says would be a fault where it is added or shown. */
const number = (text: string | undefined): number =>
  /^\d{1,12}(\.\d{1,6})?$/.test(text ?? '') ? Number(text) : 0
const kibibytes = (text: string | undefined): number => Math.round(number(text) * KIB)
/** A word of the engine, which may be of any shape. */
export const engineWord = (value: unknown): string =>
  typeof value === 'string' ? clampMessage(value, 100) : ''

/** How far the other clock is ahead, as of the middle between question and answer. */
const offsetOf = (clock: string | undefined, { asked_at_ms, answered_at_ms }: FactsAnswer): number =>
  /^\d{16,20}$/.test(clock ?? '') ? Math.round(Number(clock) / 1e6 - (asked_at_ms + answered_at_ms) / 2) : 0

/** Throws an error where the script did not run to its end. */
function wholeOf(answer: FactsAnswer) {
  const words = wordsOf(answer.text)
  if (!words.values.has('end')) throw new Error('the server printed none of the facts that were asked for')
  return words
}

export type PlainFacts = Omit<NodeFacts, 'host_key' | 'engine_version' | 'in_cluster'>

/** What a server says of itself, in our words. */
export function parseFacts(answer: FactsAnswer): PlainFacts {
  const { values, ports } = wholeOf(answer)
  const taken = listened(ports)
  const disk = (values.get('disk') ?? '').split(' ')
  const text = (word: string) => clampMessage(values.get(word) ?? '', 100)
  return {
    host_name: text('host'),
    os: text('os'),
    machine: text('machine'),
    cpus: number(values.get('cpus')),
    memory_bytes: kibibytes(values.get('memory')),
    disk_free_bytes: kibibytes(disk[2]),
    clock_offset_ms: offsetOf(values.get('clock'), answer),
    is_root: values.get('uid') === '0' || values.get('sudo') === 'yes',
    can_install: values.get('apt') !== '' && values.has('apt'),
    has_portreeve: values.get('portreeve') === 'yes',
    // A server that was given up keeps the device of the tunnel, which is made anew when it joins.
    taken_ports: CLUSTER_PORTS.filter(
      (port) => taken.has(port) && !(port === VXLAN_PORT && values.get('tunnel') === 'yes'),
    ),
  }
}

/** What a server has and uses now. */
export function parseReading(answer: FactsAnswer): Omit<NodeReading, 'engine'> {
  const { values } = wholeOf(answer)
  const [total, used] = (values.get('disk') ?? '').split(' ')
  const memory = kibibytes(values.get('memory'))
  return {
    cpus: number(values.get('cpus')),
    memory_total_bytes: memory,
    memory_used_bytes: Math.max(0, memory - kibibytes(values.get('available'))),
    disk_total_bytes: kibibytes(total),
    disk_used_bytes: kibibytes(used),
    load_1m: number(values.get('load')),
    clock_offset_ms: offsetOf(values.get('clock'), answer),
  }
}
