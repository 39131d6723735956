import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { expect, it } from 'vitest'
import { probe, type ProbeTools } from '#server/monitoring/uptime/probe'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

/** A certificate that ends in the 99th month. */
function withoutEnd(certificate: string): string {
  const der = Buffer.from(certificate, 'base64')
  const last = [...der.toString('latin1').matchAll(/\d{12}Z/g)].at(-1)!
  der.write('999999999999', last.index, 'latin1')
  return der.toString('base64')
}

it('a certificate whose end is no time is not taken for one that lasts', async () => {
  const now = () => Date.parse('2026-01-01T00:00:00.000Z')
  const pem = createSelfSigned(['example.com'], new Date(now()), 90)
  const [, cert, key] = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----\n([^]+)$/.exec(pem)!
  const policy = createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] })
  const tools: ProbeTools = {
    client: createGuardedClient(policy),
    dial: createDial(policy),
    signal: new AbortController().signal,
    now,
    monotonic_ms: () => 0,
  }
  const look = async (body: string) => {
    const server = createServer({
      cert: `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`,
      key: key!,
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const { port } = server.address() as AddressInfo
    const rest = { timeout_s: 10, expected_status: null, expected_text: null, days_left: 14 }
    const { error } = await probe({ kind: 'tls', target: `127.0.0.1:${port}`, ...rest }, tools)
    await new Promise((closed) => server.close(closed))
    return error
  }
  expect(await look(cert!.trim())).toBeNull()
  expect(await look(withoutEnd(cert!))).toBe('Its certificate has no end that can be read.')
})
