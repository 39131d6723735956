import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { request } from 'node:https'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { eventually, freePorts } from './portreeve.ts'

/**
 * A real certificate authority (Pebble) with a name server of its own, in which every name leads to
 * 127.0.0.1.
 */
export interface Authority {
  directory_url: string
  /** What TLS connections to the authority itself have to trust, in PEM, and as a file. */
  ca: string
  ca_file: string
  /** `host:port` for the list of private hosts that may be reached. */
  listed: string
  /** Where it looks for the answers of HTTP-01. */
  http_port: number
  /** Its name server, `127.0.0.1:port`. */
  resolver: string
  /** The root that its certificates lead to, in PEM. */
  root(): Promise<string>
  /** TXT values at its name server. */
  setTxt(name: string, value: string): Promise<void>
  clearTxt(name: string): Promise<void>
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}
export interface AuthorityOptions {
  http_port?: number
  /** Name server that it asks instead of its own, `host:port`. */
  dns?: string
  /** Lifetime of certificates; default 90 days. */
  validity_s?: number
  /** External account binding that is asked for: key identifier and HMAC key in base64url. */
  eab?: { kid: string; hmac_key: string }
  /** Percentage of nonces that it refuses; default 0. */
  bad_nonces?: number
}

function ask(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request(url, { ca, agent: false, timeout: 5000 }, (response) => {
      let text = ''
      response
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          text += chunk
        })
        .on('end', () => resolve(text))
    })
      .on('error', reject)
      .end()
  })
}
const ended = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGKILL')
  })

export async function startAuthority(options: AuthorityOptions = {}): Promise<Authority> {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-ca-'))
  const [port = 0, management = 0, dns = 0, control = 0, free = 0] = await freePorts(5)
  const http_port = options.http_port ?? free
  const pem = createSelfSigned(['localhost'], new Date(), 30)
  const at = pem.indexOf('-----BEGIN PRIVATE')
  const ca = pem.slice(0, at)
  const ca_file = join(directory, 'ca.pem')
  writeFileSync(ca_file, ca)
  writeFileSync(join(directory, 'key.pem'), pem.slice(at))
  writeFileSync(
    join(directory, 'pebble.json'),
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: ca_file,
        privateKey: join(directory, 'key.pem'),
        httpPort: http_port,
        tlsPort: 1,
        ocspResponderURL: '',
        certificateValidityPeriod: options.validity_s ?? 90 * 86_400,
        externalAccountBindingRequired: options.eab !== undefined,
        ...(options.eab ? { externalAccountMACKeys: { [options.eab.kid]: options.eab.hmac_key } } : {}),
      },
    }),
  )
  const names = spawn(
    '/usr/bin/pebble-challtestsrv',
    [
      '-dns01',
      `127.0.0.1:${dns}`,
      '-management',
      `127.0.0.1:${control}`,
      '-http01',
      '',
      '-https01',
      '',
      '-tlsalpn01',
      '',
      '-defaultIPv4',
      '127.0.0.1',
      '-defaultIPv6',
      '',
    ],
    { stdio: 'ignore' },
  )
  let pebble: ChildProcess
  const directory_url = `https://localhost:${port}/dir`
  const start = async () => {
    pebble = spawn(
      '/usr/bin/pebble',
      ['-config', join(directory, 'pebble.json'), '-dnsserver', options.dns ?? `127.0.0.1:${dns}`],
      {
        stdio: 'ignore',
        env: {
          PATH: process.env.PATH,
          PEBBLE_VA_NOSLEEP: '1',
          PEBBLE_WFE_NONCEREJECT: String(options.bad_nonces ?? 0),
          PEBBLE_AUTHZREUSE: '0',
        },
      },
    )
    await eventually('The authority answering', async () => (await ask(directory_url, ca)) && true, 20_000)
  }
  await start()
  const control_zone = (path: string, body: object) =>
    eventually(
      'The name server of the authority taking a record',
      async () =>
        (
          await fetch(`http://127.0.0.1:${control}/${path}`, {
            method: 'POST',
            body: JSON.stringify(body),
          })
        ).ok || undefined,
      10_000,
    )
  return {
    directory_url,
    ca,
    ca_file,
    http_port,
    start,
    listed: `localhost:${port}`,
    resolver: `127.0.0.1:${dns}`,
    root: () => ask(`https://localhost:${management}/roots/0`, ca),
    setTxt: async (host, value) => void (await control_zone('set-txt', { host: `${host}.`, value })),
    clearTxt: async (host) => void (await control_zone('clear-txt', { host: `${host}.` })),
    stop: () => ended(pebble),
    async close() {
      await Promise.all([ended(pebble), ended(names)])
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** What answers HTTP-01 for tests without an edge. */
export async function serveChallenges(
  port: number,
): Promise<{ answers: Map<string, string>; close(): Promise<void> }> {
  const answers = new Map<string, string>()
  const server: Server = createServer((incoming, response) => {
    const answer = answers.get(`${incoming.headers.host?.replace(/:\d+$/, '')}${incoming.url}`)
    if (answer === undefined) response.statusCode = 404
    response.end(answer)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    answers,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
