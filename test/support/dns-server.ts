import { createSocket } from 'node:dgram'
import { isIPv4 } from 'node:net'
import type { FakeDns } from '#server/platform/dns/fake'
import { createFakeDns } from '#server/platform/dns/fake'
import type { RecordType } from '#server/platform/dns/dns'

/**
 * A resolver on 127.0.0.1 that answers over UDP from names in memory, aliases included as real resolvers do.
 */
export interface TestDnsServer extends Pick<FakeDns, 'set' | 'fail'> {
  /** `127.0.0.1:port`. */
  address: string
  /** Questions that arrived, as `<name> <type>`. */
  readonly asked: readonly string[]
  /** Questions that are never answered, as `<name> <type>`. */
  readonly unanswered: Set<string>
  close(): Promise<void>
}

const TYPES: Record<number, RecordType> = { 1: 'A', 5: 'CNAME', 16: 'TXT', 28: 'AAAA' }
const CODES: Record<RecordType, number> = { A: 1, CNAME: 5, TXT: 16, AAAA: 28 }
const RCODE = { ok: 0, servfail: 2, missing: 3, refused: 5 }

const nameBytes = (name: string) =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ])

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string) => text.split(':').filter(Boolean)
  const missing = 8 - groups(head).length - groups(tail).length
  return Buffer.from(
    [
      ...groups(head),
      ...Array.from({ length: address.includes('::') ? missing : 0 }, () => '0'),
      ...groups(tail),
    ].flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]),
  )
}
function textBytes(text: string): Buffer {
  const parts = text.match(/[\s\S]{1,255}/g) ?? ['']
  return Buffer.concat(parts.map((part) => Buffer.from([part.length, ...Buffer.from(part)])))
}
function bytesOf(type: RecordType, value: string): Buffer {
  if (type === 'TXT') return textBytes(value)
  return type === 'CNAME' ? nameBytes(value) : addressBytes(value)
}
function record(name: string, type: RecordType, value: string): Buffer {
  const bytes = bytesOf(type, value)
  const head = Buffer.alloc(10)
  head.writeUInt16BE(CODES[type], 0)
  head.writeUInt16BE(1, 2)
  head.writeUInt16BE(bytes.length, 8)
  return Buffer.concat([nameBytes(name), head, bytes])
}

function questionOf(message: Buffer): { name: string; type: RecordType | undefined; end: number } {
  const labels: string[] = []
  let at = 12
  while (message[at]! > 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + message[at]!))
    at += message[at]! + 1
  }
  return {
    name: labels.join('.').toLowerCase(),
    type: TYPES[message.readUInt16BE(at + 1)],
    end: at + 5,
  }
}

export async function startDnsServer(): Promise<TestDnsServer> {
  const names = createFakeDns()
  const socket = createSocket('udp4')
  const asked: string[] = []
  const unanswered = new Set<string>()
  const respond = async (message: Buffer): Promise<Buffer | undefined> => {
    const { name, type, end } = questionOf(message)
    asked.push(`${name} ${type}`)
    if (unanswered.has(`${name} ${type}`)) return undefined
    const answers: Buffer[] = []
    let code = RCODE.ok
    if (type) {
      let target = name
      for (let hop = 0; type !== 'CNAME' && hop < 16; hop += 1) {
        const alias = await names.ask(target, 'CNAME')
        if (alias.outcome !== 'found') break
        answers.push(record(target, 'CNAME', alias.values[0]!))
        target = alias.values[0]!
      }
      const found = await names.ask(name, type)
      if (found.outcome === 'failed' && found.reason === 'timeout') return undefined
      if (found.outcome === 'found') answers.push(...found.values.map((value) => record(target, type, value)))
      if (found.outcome === 'missing') code = RCODE.missing
      if (found.outcome === 'failed') code = found.reason === 'refused' ? RCODE.refused : RCODE.servfail
    }
    const head = Buffer.alloc(12)
    message.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8180 | code, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(answers.length, 6)
    return Buffer.concat([head, message.subarray(12, end), ...answers])
  }
  socket.on('message', (message, from) => {
    void respond(message).then((answer) => {
      if (answer) socket.send(answer, from.port, from.address)
    })
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    unanswered,
    set: names.set,
    fail: names.fail,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}
