import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rfc2136 } from '#server/platform/dns-providers/rfc2136'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { eventually, freePort } from '#test/support/portreeve'
import { describeDnsProvider, type ProviderWorld, ZONE } from '../platform/dns-providers/contract.ts'

/** A real BIND with one zone that one key may write TXT records of. */
async function startBind(): Promise<ProviderWorld> {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-bind-'))
  const port = await freePort()
  const secret = randomBytes(32).toString('base64')
  writeFileSync(join(directory, 'zone'), `$TTL 60\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`)
  writeFileSync(join(directory, 'named.conf'), `
key portreeve { algorithm hmac-sha256; secret "${secret}"; };
options { directory "${directory}"; pid-file none; session-keyfile none; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no; };
controls { };
zone "${ZONE}" { type primary; file "zone"; update-policy { grant portreeve zonesub TXT; }; };
`)
  const server: ChildProcess = spawn('/usr/sbin/named', ['-g', '-c', join(directory, 'named.conf')], { stdio: 'ignore' })
  const resolver = new Resolver({ timeout: 1000, tries: 2 })
  resolver.setServers([`127.0.0.1:${port}`])
  await eventually('The name server answering', async () => (await resolver.resolveSoa(ZONE)) && true, 20_000)
  const config = { server: '127.0.0.1', port, zone: ZONE, key_name: 'portreeve', algorithm: 'hmac-sha256', secret }
  return {
    descriptor: rfc2136, config, wrong: { ...config, secret: randomBytes(32).toString('base64') },
    policy: createOutboundPolicy({ allowed_private_hosts: [`127.0.0.1:${port}`] }),
    read: (name) => resolver.resolveTxt(name).then((records) => records.map((parts) => parts.join('')), () => []),
    close: () => new Promise((resolve) => {
      server.once('exit', () => {
        rmSync(directory, { recursive: true, force: true })
        resolve()
      })
      server.kill('SIGTERM')
    }),
  }
}

describeDnsProvider('rfc2136 at BIND', startBind)
