import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { freePort } from './portreeve.ts'

/**
 * Ways to write an address of this machine, its networks or a cloud's metadata service. Whatever a user can
 * aim must refuse all of them.
 */
export const INSIDE_HOSTS = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0x7f.1',
  '0177.0.0.1',
  '0177.0.0.01',
  '00000177.1',
  '017700000001',
  '0',
  '0.0.0.0',
  '127.0.0.1.',
  '127.0.0.2',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '[fe80::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  '１２７.0.0.1',
  '127。0。0。1',
  'ⓛocalhost',
  '127%2e0%2e0%2e1',
  '169.254.169.254',
  '0xa9fea9fe',
  '2852039166',
  '[::ffff:a9fe:a9fe]',
  '100.64.0.1',
  '100.100.100.200',
  '172.17.0.1',
  '10.0.0.1',
  '192.168.0.1',
  'metadata.google.internal',
  'engine',
  '224.0.0.1',
  '255.255.255.255',
  'user:password@127.0.0.1',
] as const

export interface Trap {
  port: number
  /** Connections and packets that arrived. */
  caught(): number
  close(): Promise<void>
}

/**
 * Listens on one port of every address of this machine, over TCP and UDP, for what must never come. `open`
 * names addresses that are left to others.
 */
export async function startTrap(open: readonly string[] = []): Promise<Trap> {
  const port = await freePort()
  let caught = 0
  const closing: (() => Promise<void>)[] = []
  const own = Object.values(networkInterfaces())
    .flat()
    .flatMap((found) => (found && !found.address.startsWith('fe80') ? [found.address] : []))
  for (const host of own.filter((address) => !open.includes(address))) {
    const server = createServer((socket) => {
      caught += 1
      socket.on('error', () => {}).destroy()
    })
    await new Promise<void>((resolve) => server.once('error', () => resolve()).listen(port, host, resolve))
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    socket.on('message', () => {
      caught += 1
    })
    await new Promise<void>((resolve) => socket.once('error', () => resolve()).bind(port, host, resolve))
    closing.push(
      () => new Promise((resolve) => server.close(() => resolve())),
      () => new Promise((resolve) => socket.close(() => resolve())),
    )
  }
  if (closing.length === 0) throw new Error('The trap listens on no address.')
  return {
    port,
    caught: () => caught,
    close: async () => void (await Promise.all(closing.map((close) => close()))),
  }
}
