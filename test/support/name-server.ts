import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually, freePort } from './portreeve.ts'

/**
 * A real BIND with one zone, of which one key may write TXT records; and these names of it lead to 127.0.0.1.
 */
export interface NameServer {
  /** `127.0.0.1:port`. */
  address: string
  /** What the provider rfc2136 is set up with. */
  config: {
    server: string
    port: number
    zone: string
    key_name: string
    algorithm: string
    secret: string
  }
  txt(name: string): Promise<string[]>
  close(): Promise<void>
}

/** The port may go to a connection of somebody else before BIND has it, which then answers over UDP alone. */
const TRIES = 3

export async function startNameServer(zone: string, names: readonly string[] = []): Promise<NameServer> {
  for (let attempt = 1; ; attempt += 1) {
    const server = await start(zone, names)
    if (await takesConnections(server.config.port)) return server
    await server.close()
    if (attempt === TRIES) throw new Error('The name server takes no connections.')
  }
}

const takesConnections = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })

async function start(zone: string, names: readonly string[]): Promise<NameServer> {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-bind-'))
  const port = await freePort()
  const secret = randomBytes(32).toString('base64')
  writeFileSync(
    join(directory, 'zone'),
    '$TTL 60\n@ IN SOA ns1 hostmaster 1 3600 600 86400 1\n@ IN NS ns1\nns1 IN A 127.0.0.1\n' +
      names.map((name) => `${name} IN A 127.0.0.1\n`).join(''),
  )
  writeFileSync(
    join(directory, 'named.conf'),
    `
key portreeve { algorithm hmac-sha256; secret "${secret}"; };
options { directory "${directory}"; pid-file none; session-keyfile none; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no; };
controls { };
zone "${zone}" { type primary; file "zone"; update-policy { grant portreeve zonesub TXT; }; };
`,
  )
  const server = spawn('/usr/sbin/named', ['-g', '-c', join(directory, 'named.conf')], {
    stdio: 'ignore',
  })
  const address = `127.0.0.1:${port}`
  const resolver = new Resolver({ timeout: 1000, tries: 2 })
  resolver.setServers([address])
  await eventually('The name server answering', async () => (await resolver.resolveSoa(zone)) && true, 20_000)
  return {
    address,
    config: {
      server: '127.0.0.1',
      port,
      zone,
      key_name: 'portreeve',
      algorithm: 'hmac-sha256',
      secret,
    },
    txt: (name) =>
      resolver.resolveTxt(name).then(
        (records) => records.map((parts) => parts.join('')),
        () => [],
      ),
    close: () =>
      new Promise((resolve) => {
        server.once('exit', () => {
          rmSync(directory, { recursive: true, force: true })
          resolve()
        })
        server.kill('SIGTERM')
      }),
  }
}
