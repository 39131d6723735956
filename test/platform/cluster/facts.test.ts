import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { cpus, hostname, totalmem } from 'node:os'
import { describe, expect, test } from 'vitest'
import { FACTS_SCRIPT, parseFacts, parseReading } from '#server/platform/cluster/facts'

const ANSWER = `Welcome to web-2!
clock 1700000005000000000
host web-2
machine aarch64
os Debian GNU/Linux 12 (bookworm)
cpus 4
memory 8000000
available 6000000
load 0.52
disk 100000000 40000000 60000000
uid 1000
sudo yes
apt /usr/bin/apt-get
portreeve
port tcp   sl  local_address rem_address   st
port tcp    0: 00000000:0016 00000000:0000 0A 00000000:00000000
port tcp    1: 0100007F:1F0A 0100007F:8888 01 00000000:00000000
port tcp6   0: 00000000000000000000000000000000:1F0A 00000000000000000000000000000000:0000 0A 0
port udp    1: 00000000:12B5 00000000:0000 07 00000000:00000000
end
`
const answered = (text: string) => ({
  text,
  asked_at_ms: 1_700_000_002_900,
  answered_at_ms: 1_700_000_003_100,
})

/** At an address that no other program of this machine uses. */
const listen = (port: number) => createServer().listen(port, '127.0.7.9')

describe('what a server says of itself', () => {
  test('is read whatever else it prints', () => {
    expect(parseFacts(answered(ANSWER))).toEqual({
      host_name: 'web-2',
      machine: 'aarch64',
      os: 'Debian GNU/Linux 12 (bookworm)',
      cpus: 4,
      memory_bytes: 8_192_000_000,
      disk_free_bytes: 61_440_000_000,
      clock_offset_ms: 2000,
      is_root: true,
      can_install: true,
      has_portreeve: false,
      taken_ports: [7946, 4789],
    })
    expect(parseReading(answered(ANSWER))).toEqual({
      cpus: 4,
      memory_total_bytes: 8_192_000_000,
      memory_used_bytes: 2_048_000_000,
      disk_total_bytes: 102_400_000_000,
      disk_used_bytes: 40_960_000_000,
      load_1m: 0.52,
      clock_offset_ms: 2000,
    })
  })
  test('of the port of the tunnel counts only where the device is not one of ours, which was left there', () => {
    const text = ANSWER.replace('\nport tcp ', '\ntunnel yes\nport tcp ')
    expect(parseFacts(answered(text)).taken_ports).toEqual([7946])
  })
  test('is a number of something, whatever it says: it is added and shown', () => {
    const text = ANSWER.replace('memory 8000000', 'memory 1e308').replace(
      'disk 100000000 40000000',
      'disk 0x10 -4',
    )
    const { memory_total_bytes, memory_used_bytes, disk_total_bytes, disk_used_bytes, load_1m } =
      parseReading(answered(text.replace('load 0.52', 'load Infinity')))
    expect([memory_total_bytes, memory_used_bytes, disk_total_bytes, disk_used_bytes, load_1m]).toEqual([
      0, 0, 0, 0, 0,
    ])
    expect(parseReading(answered(ANSWER.replace('memory 8000000', 'memory 0.3'))).memory_total_bytes).toBe(
      307,
    )
  })
  test('of a port counts only where somebody listens', () => {
    const text = ANSWER.replace(/port (tcp6|udp).*\n/g, '')
    expect(parseFacts(answered(text)).taken_ports).toEqual([])
  })
  test('holds no control characters, and nothing where it says nothing', () => {
    const text = 'host \u001b[31mred\u0007\nos \nuid 1000\nsudo \napt \nend\n'
    expect(parseFacts(answered(text))).toMatchObject({
      host_name: '[31mred',
      os: '',
      cpus: 0,
      is_root: false,
      can_install: false,
      clock_offset_ms: 0,
    })
  })
  test('is refused where it breaks off', () => {
    expect(() => parseFacts(answered('host web-2\n'))).toThrow('none of the facts')
  })
  test('names who listens on its ports, and none of the thousands of other sockets', async () => {
    const listeners = [listen(7946), listen(0)]
    await Promise.all(listeners.map((listener) => once(listener, 'listening')))
    const text = execFileSync('sh', ['-s'], { input: FACTS_SCRIPT, encoding: 'utf8' })
    for (const listener of listeners) listener.close()
    const ports = text.split('\n').filter((line) => line.startsWith('port '))
    expect(ports).toContainEqual(expect.stringMatching(/^port tcp +\d+: 0907007F:1F0A /))
    expect(ports.filter((line) => !/:(1F0A|12B5) .* (0A|07) /.test(line))).toEqual([])
    const answer = { text, asked_at_ms: Date.now(), answered_at_ms: Date.now() }
    expect(parseFacts(answer).taken_ports).toContain(7946)
  })
  test('is what this machine says through its own shell', () => {
    const asked_at_ms = Date.now()
    const text = execFileSync('sh', ['-s'], { input: FACTS_SCRIPT, encoding: 'utf8' })
    const facts = parseFacts({ text, asked_at_ms, answered_at_ms: Date.now() })
    expect(facts).toMatchObject({ host_name: hostname(), cpus: cpus().length })
    expect(facts.memory_bytes / totalmem()).toBeCloseTo(1, 2)
    expect(facts.disk_free_bytes).toBeGreaterThan(0)
  })
})
