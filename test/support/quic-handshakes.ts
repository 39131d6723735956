import { createCipheriv, createHmac, generateKeyPairSync, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'

/**
 * Handshakes of QUIC that are begun and never ended: the first packet of a client, and once more with the token that a
 * busy server asks for. Source: RFC 9000, section 17.2, and RFC 9001, section 5.
 */
export interface BegunHandshakes {
  /** Begins so many more, a few at a time. */
  begin(count: number): Promise<void>
  /** How many the server has taken and answered with its part. */
  answered(): number
  close(): void
}

interface Handshake {
  server_id: Buffer
  own_id: Buffer
  token: Buffer
  packets: number
  hello: Buffer
  is_answered: boolean
}

const SALT = Buffer.from('38762cf7f55934b34d179ae6a4c80cadccbb7f0a', 'hex')
const DATAGRAM = 1_200
const TAG = 16
const AT_ONCE = 25

const uint16 = (number: number): Buffer => Buffer.from([number >> 8, number & 0xff])
const short = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([bytes.length]), bytes])
const long = (bytes: Buffer): Buffer => Buffer.concat([uint16(bytes.length), bytes])
/** A number below 16,384 as QUIC writes it. */
const varint = (number: number): Buffer => uint16(0x4000 | number)

const hmac = (key: Buffer, text: Buffer): Buffer => createHmac('sha256', key).update(text).digest()
function expand(secret: Buffer, label: string, length: number): Buffer {
  const name = short(Buffer.from(`tls13 ${label}`))
  const text = Buffer.concat([uint16(length), name, Buffer.from([0, 1])])
  return hmac(secret, text).subarray(0, length)
}

const SHARE = generateKeyPairSync('x25519').publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
const extension = (type: number, body: Buffer): Buffer => Buffer.concat([uint16(type), long(body)])

/** The first message of TLS: HTTP/3, one group, and limits that a server may send within. */
function helloOf(own_id: Buffer, name: string): Buffer {
  const limits = [4, 5, 6, 7].flatMap((id) => [Buffer.from([id]), short(Buffer.from([0x80, 4, 0, 0]))])
  const extensions = Buffer.concat([
    extension(0, long(Buffer.concat([Buffer.from([0]), long(Buffer.from(name))]))),
    extension(10, long(uint16(0x1d))),
    extension(13, long(Buffer.concat([uint16(0x0403), uint16(0x0804)]))),
    extension(16, long(short(Buffer.from('h3')))),
    extension(43, short(uint16(0x0304))),
    extension(51, long(Buffer.concat([uint16(0x1d), long(SHARE)]))),
    extension(57, Buffer.concat([Buffer.from([0x0f]), short(own_id), ...limits])),
  ])
  const body = Buffer.concat([
    uint16(0x0303),
    randomBytes(32),
    Buffer.from([0]),
    long(uint16(0x1301)),
    Buffer.from([1, 0]),
    long(extensions),
  ])
  return Buffer.concat([Buffer.from([1, 0]), long(body)])
}

/** The next packet of a handshake, protected by keys that its connection id says. */
function packetOf(handshake: Handshake): Buffer {
  const secret = expand(hmac(SALT, handshake.server_id), 'client in', 32)
  const [key, nonce, mask_key] = [
    expand(secret, 'quic key', 16),
    expand(secret, 'quic iv', 12),
    expand(secret, 'quic hp', 16),
  ]
  const { server_id, own_id, token, hello } = handshake
  const number = Buffer.alloc(4)
  number.writeUInt32BE(handshake.packets++)
  const head = Buffer.concat([
    Buffer.from([0xc3, 0, 0, 0, 1]),
    short(server_id),
    short(own_id),
    varint(token.length),
    token,
  ])
  const frame = Buffer.concat([Buffer.from([6, 0]), varint(hello.length), hello])
  const text = Buffer.concat([frame, Buffer.alloc(DATAGRAM - head.length - 6 - TAG - frame.length)])
  const header = Buffer.concat([head, varint(text.length + 4 + TAG), number])
  for (let at = 0; at < 4; at++) nonce[8 + at]! ^= number[at]!
  const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(header)
  const sealed = Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()])
  const mask = createCipheriv('aes-128-ecb', mask_key, null).update(sealed.subarray(0, 16))
  header[0]! ^= mask[0]! & 0x0f
  for (let at = 0; at < 4; at++) header[header.length - 4 + at]! ^= mask[1 + at]!
  return Buffer.concat([header, sealed])
}

/** @param localAddress where they come from, all of them. */
export async function beginHandshakes(
  { host, port }: { host: string; port: number },
  name: string,
  localAddress: string,
): Promise<BegunHandshakes> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, localAddress, resolve))
  const begun = new Map<string, Handshake>()
  let answered = 0
  const send = (handshake: Handshake) => socket.send(packetOf(handshake), port, host)
  socket.on('message', (packet) => {
    const own_end = 6 + packet[5]!
    const server_end = own_end + 1 + packet[own_end]!
    const handshake = begun.get(packet.toString('hex', 6, own_end))
    if (!handshake || (packet[0]! & 0x80) === 0) return
    const wants_token = (packet[0]! & 0x30) === 0x30
    if (wants_token && handshake.token.length === 0) {
      handshake.token = Buffer.from(packet.subarray(server_end, packet.length - TAG))
      handshake.server_id = Buffer.from(packet.subarray(own_end + 1, server_end))
      send(handshake)
    }
    if (wants_token || handshake.is_answered) return
    handshake.is_answered = true
    answered += 1
  })
  return {
    answered: () => answered,
    close: () => socket.close(),
    async begin(count) {
      for (let made = 0; made < count; made++) {
        const own_id = randomBytes(8)
        const handshake = {
          server_id: randomBytes(8),
          own_id,
          token: Buffer.alloc(0),
          packets: 0,
          hello: helloOf(own_id, name),
          is_answered: false,
        }
        begun.set(own_id.toString('hex'), handshake)
        send(handshake)
        if (made % AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
  }
}
