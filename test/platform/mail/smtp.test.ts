import { createServer, type Server } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createSmtpMail } from '#server/platform/mail/smtp'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

let server: Server
let ended: Promise<void>
beforeEach(async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  ended = promise
  server = createServer((socket) => {
    socket.on('error', () => {}).on('close', resolve)
    socket.write('220 test ESMTP\r\n')
    // A line of an answer that goes on and on: never silent, never done.
    socket.once('data', () => {
      const more = setInterval(() => socket.write('250-and more\r\n'), 2)
      socket.once('close', () => clearInterval(more))
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
})
afterEach(() => new Promise((closed) => server.close(closed)))

it('a mail server whose answer never ends holds a message for no longer than its time', async () => {
  const { port } = server.address() as AddressInfo
  const mail = createSmtpMail({
    isConfigured: () => true,
    settings: () => ({ host: '127.0.0.1', port, security: 'none', from: 'portreeve@example.com' }),
    dial: createDial(createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] })),
    message_ms: 50,
  })
  await expect(mail.send({ to: 'ada@example.com', subject: 'x', text: 'x' })).rejects.toMatchObject({
    code: 'unreachable',
  })
  await ended
})
