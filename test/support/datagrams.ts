import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** Port that is listened on. */
const PORT = 9999
const END = 'no more'

const node = (network: string, script: string, ...args: string[]): ChildProcess =>
  spawn('nsenter', [`--net=${network}`, process.execPath, '-e', script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })

export interface Datagram {
  /** Address that it is sent from, of those that the network has; left out, the kernel chooses. */
  from?: string
  to: string
  port: number
  bytes: Buffer
}
/** Sends a datagram within a network namespace, as any program there can. One that is refused at once is sent as well. */
export async function inNetwork(network: string, { from, to, port, bytes }: Datagram): Promise<void> {
  const script = `const socket = require('node:dgram').createSocket('udp4')
const [from, to, port, text] = process.argv.slice(1)
socket.on('error', () => socket.close())
socket.bind(0, from || undefined, () => socket.send(Buffer.from(text, 'base64'), Number(port), to, () => socket.close()))`
  await once(node(network, script, from ?? '', to, String(port), bytes.toString('base64')), 'exit')
}

/** What arrives at port 9999 of a network namespace while something is done. */
export async function heardIn(network: string, work: () => Promise<void>): Promise<string[]> {
  const script = `const socket = require('node:dgram').createSocket('udp4')
socket.on('message', (bytes) => {
  if (bytes.toString() === '${END}') return socket.close()
  console.log(bytes.toString())
})
socket.bind(${PORT}, () => console.log(''))`
  const listener = node(network, script)
  const lines = createInterface({ input: listener.stdout! })[Symbol.asyncIterator]()
  await lines.next()
  await work()
  await inNetwork(network, { to: '127.0.0.1', port: PORT, bytes: Buffer.from(END) })
  const heard: string[] = []
  for (let line = await lines.next(); !line.done; line = await lines.next()) heard.push(line.value)
  return heard
}

const hardware = (address: string): number[] => address.split(':').map((part) => Number.parseInt(part, 16))
const internet = (address: string): number[] => address.split('.').map(Number)
const short = (value: number): number[] => [value >> 8, value & 0xff]
function checksum(header: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < header.length; at += 2) sum += header[at]! * 256 + header[at + 1]!
  while (sum > 0xff_ff) sum = (sum >> 16) + (sum & 0xff_ff)
  return ~sum & 0xff_ff
}
/** The bytes by which a network over several servers carries a datagram to port 9999. */
export function tunnelled(id: number, hardware_address: string, from: string, to: string): Buffer {
  const text = Buffer.from('forged')
  const datagram = [...short(PORT), ...short(PORT), ...short(8 + text.length), 0, 0, ...text]
  const header = [0x45, 0, ...short(20 + datagram.length), 0, 1, 0, 0, 64, 17, 0, 0]
  const addresses = [...internet(from), ...internet(to)]
  header.splice(10, 2, ...short(checksum([...header, ...addresses])))
  const frame = [...hardware(hardware_address), 2, 0, 0, 0, 0, 1, 8, 0, ...header, ...addresses, ...datagram]
  return Buffer.from([8, 0, 0, 0, id >> 16, (id >> 8) & 0xff, id & 0xff, 0, ...frame])
}
